// Sarama, unmodified.
package main

import (
	"fmt"
	"time"

	. "highwater/compatibility/cells"

	"github.com/IBM/sarama"
)

func config(change func(*sarama.Config)) *sarama.Config {
	c := sarama.NewConfig()
	c.Version = sarama.MaxVersion
	c.Producer.Return.Successes = true
	c.Producer.Partitioner = sarama.NewManualPartitioner
	c.Producer.RequiredAcks = sarama.WaitForAll
	c.Consumer.Offsets.Initial = sarama.OffsetOldest
	c.Consumer.Offsets.AutoCommit.Enable = false
	c.Consumer.Group.Heartbeat.Interval = 300 * time.Millisecond
	c.Consumer.Group.Rebalance.GroupStrategies = []sarama.BalanceStrategy{sarama.NewBalanceStrategyRange()}
	if change != nil {
		change(c)
	}
	return c
}

func message(topic string, partition int32, value string) *sarama.ProducerMessage {
	return &sarama.ProducerMessage{Topic: topic, Partition: partition, Value: sarama.StringEncoder(value)}
}

func producer(scene Scene, change func(*sarama.Config)) sarama.SyncProducer {
	return Got(sarama.NewSyncProducer(scene.Bootstrap, config(change)))
}

func send(writer sarama.SyncProducer, topic string, partition int32, word string, count int) {
	messages := []*sarama.ProducerMessage{}
	for _, value := range Values(word, count) {
		messages = append(messages, message(topic, partition, value))
	}
	Must(writer.SendMessages(messages))
}

func readAt(scene Scene, partition int32, offset int64, count int, change func(*sarama.Config)) (got []*sarama.ConsumerMessage) {
	consumer := Got(sarama.NewConsumer(scene.Bootstrap, config(change)))
	defer consumer.Close()
	reader := Got(consumer.ConsumePartition(scene.Topic, partition, offset))
	defer reader.Close()
	return take(reader, count)
}

func take(reader sarama.PartitionConsumer, count int) (got []*sarama.ConsumerMessage) {
	late := time.After(Patience)
	for len(got) < count {
		select {
		case each := <-reader.Messages():
			got = append(got, each)
		case <-late:
			panic(fmt.Errorf("%d of %d records came", len(got), count))
		}
	}
	return got
}

func values(messages []*sarama.ConsumerMessage) (values []string) {
	for _, each := range messages {
		values = append(values, string(each.Value))
	}
	return values
}

func main() {
	Main(map[string]Feature{
		"acks-0":                 acks(sarama.NoResponse),
		"acks-1":                 acks(sarama.WaitForLocal),
		"acks-all":               acks(sarama.WaitForAll),
		"send-forget":            sendForget,
		"send-sync":              acks(sarama.WaitForAll),
		"send-callback":          sendCallback,
		"codec-none":             codec(sarama.CompressionNone),
		"codec-gzip":             codec(sarama.CompressionGZIP),
		"codec-snappy":           codec(sarama.CompressionSnappy),
		"codec-lz4":              codec(sarama.CompressionLZ4),
		"codec-zstd":             codec(sarama.CompressionZSTD),
		"headers":                headers,
		"idempotent":             idempotent,
		"txn-commit":             txnCommit,
		"txn-abort":              txnAbort,
		"txn-fencing":            txnFencing,
		"txn-offsets":            txnOffsets,
		"read-committed":         readCommitted,
		"group-classic":          groupClassic,
		"assignor-sticky":        assignorSticky,
		"assignor-custom":        assignorCustom,
		"static-member":          staticMember,
		"rebalance-listener":     rebalanceListener,
		"pause-resume":           pauseResume,
		"seek":                   seek,
		"outside-store":          outsideStore,
		"interceptors":           interceptors,
		"commit-auto":            commitAuto,
		"commit-sync":            commitSync,
		"reset-earliest-new":     resetEarliest(0),
		"reset-earliest-expired": resetEarliest(0),
		"reset-earliest-trimmed": resetEarliest(5),
		"reset-latest-new":       resetLatest,
		"reset-latest-expired":   resetLatest,
		"reset-latest-trimmed":   resetLatest,
		"admin-create":           admin(adminCreate),
		"admin-describe":         admin(adminDescribe),
		"admin-configs":          admin(adminConfigs),
		"admin-delete-records":   admin(adminDeleteRecords),
		"admin-groups":           admin(adminGroups),
		"admin-delete-group":     admin(adminDeleteGroup),
		"admin-offsets":          admin(adminOffsets),
		"admin-alter-offsets":    admin(adminAlterOffsets),
	})
}
