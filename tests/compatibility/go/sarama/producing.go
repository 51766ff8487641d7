// acks, ways to send, codecs, headers, idempotence, transactions.
package main

import (
	"errors"
	"fmt"
	"strings"

	. "highwater/compatibility/cells"

	"github.com/IBM/sarama"
)

func acks(acks sarama.RequiredAcks) Feature {
	return func(scene Scene) (map[string]any, error) {
		writer := producer(scene, func(c *sarama.Config) { c.Producer.RequiredAcks = acks })
		defer writer.Close()
		offsets := []int64{}
		for _, value := range Values("value", 10) {
			_, offset, err := writer.SendMessage(message(scene.Topic, 0, value))
			Must(err)
			offsets = append(offsets, offset)
		}
		if acks == sarama.NoResponse {
			return nil, nil
		}
		return map[string]any{"offsets": offsets}, nil
	}
}

func async(scene Scene, change func(*sarama.Config)) sarama.AsyncProducer {
	return Got(sarama.NewAsyncProducer(scene.Bootstrap, config(change)))
}

func sendForget(scene Scene) (map[string]any, error) {
	writer := async(scene, func(c *sarama.Config) { c.Producer.Return.Successes, c.Producer.Return.Errors = false, false })
	for _, value := range Values("value", 10) {
		writer.Input() <- message(scene.Topic, 0, value)
	}
	return nil, writer.Close()
}

func sendCallback(scene Scene) (map[string]any, error) {
	writer := async(scene, nil)
	defer writer.Close()
	for _, value := range Values("value", 10) {
		writer.Input() <- message(scene.Topic, 0, value)
	}
	for range 10 {
		select {
		case <-writer.Successes():
		case problem := <-writer.Errors():
			return nil, problem
		}
	}
	return nil, nil
}

func codec(codec sarama.CompressionCodec) Feature {
	return func(scene Scene) (map[string]any, error) {
		writer := producer(scene, func(c *sarama.Config) { c.Producer.Compression = codec })
		defer writer.Close()
		send(writer, scene.Topic, 0, "value", 50)
		ExpectEqual(values(readAt(scene, 0, sarama.OffsetOldest, 50, nil)), Values("value", 50), "what was read")
		return nil, nil
	}
}

func headers(scene Scene) (map[string]any, error) {
	writer := producer(scene, nil)
	defer writer.Close()
	sent := message(scene.Topic, 0, "value-0")
	for _, pair := range [][2]string{{"trace", "1"}, {"trace", "2"}, {"empty", ""}} {
		sent.Headers = append(sent.Headers, sarama.RecordHeader{Key: []byte(pair[0]), Value: []byte(pair[1])})
	}
	Must(writer.SendMessages([]*sarama.ProducerMessage{sent}))
	said := []string{}
	for _, header := range readAt(scene, 0, sarama.OffsetOldest, 1, nil)[0].Headers {
		said = append(said, string(header.Key)+"="+string(header.Value))
	}
	return map[string]any{"headers": said}, nil
}

func makeIdempotent(c *sarama.Config) {
	c.Producer.Idempotent = true
	c.Net.MaxOpenRequests = 1
}

func idempotent(scene Scene) (map[string]any, error) {
	writer := producer(scene, makeIdempotent)
	defer writer.Close()
	for _, value := range Values("value", 20) {
		Must(writer.SendMessages([]*sarama.ProducerMessage{message(scene.Topic, 0, value)}))
	}
	return nil, nil
}

// -- transactions

func begun(scene Scene) sarama.SyncProducer {
	transactional := config(func(c *sarama.Config) {
		makeIdempotent(c)
		c.Producer.Transaction.ID = scene.Topic
	})
	var writer sarama.SyncProducer
	Until("an id", func() bool {
		made, err := sarama.NewSyncProducer(scene.Bootstrap, transactional)
		if errors.Is(err, sarama.ErrConcurrentTransactions) {
			return false // an older transaction is being aborted: Sarama leaves the retry to the program
		}
		Must(err)
		writer = made
		return true
	})
	Must(writer.BeginTxn())
	return writer
}

func txnCommit(scene Scene) (map[string]any, error) {
	writer := begun(scene)
	defer writer.Close()
	for partition := range int32(2) {
		send(writer, scene.Topic, partition, "kept", 5)
	}
	return nil, writer.CommitTxn()
}

func txnAbort(scene Scene) (map[string]any, error) {
	writer := begun(scene)
	defer writer.Close()
	send(writer, scene.Topic, 0, "dropped", 5)
	Must(writer.AbortTxn())
	Must(writer.BeginTxn())
	send(writer, scene.Topic, 0, "kept", 5)
	return nil, writer.CommitTxn()
}

func txnFencing(scene Scene) (map[string]any, error) {
	old := begun(scene)
	send(old, scene.Topic, 0, "dropped", 5)
	current := begun(scene)
	defer current.Close()
	send(current, scene.Topic, 0, "kept", 5)
	Must(current.CommitTxn())
	err := old.CommitTxn()
	if err == nil {
		return nil, errors.New("the old producer could commit")
	}
	return map[string]any{"error": err.Error()}, nil
}

func txnOffsets(scene Scene) (map[string]any, error) {
	m := join(scene, func(c *sarama.Config) { c.Consumer.IsolationLevel = sarama.ReadCommitted })
	defer m.close()
	m.reads(10)
	writer := begun(scene)
	defer writer.Close()
	for _, value := range Values("seen-value", 10) {
		Must(writer.SendMessages([]*sarama.ProducerMessage{message(scene.Topic+"-out", 0, value)}))
	}
	offsets := map[string][]*sarama.PartitionOffsetMetadata{scene.Topic: {{Partition: 0, Offset: 10}}}
	Must(writer.AddOffsetsToTxn(offsets, scene.Topic))
	return nil, writer.CommitTxn()
}

func readCommitted(scene Scene) (map[string]any, error) {
	committed := readAt(scene, 0, sarama.OffsetOldest, 10, func(c *sarama.Config) { c.Consumer.IsolationLevel = sarama.ReadCommitted })
	for _, value := range values(committed) {
		if !strings.HasPrefix(value, "kept") {
			return nil, fmt.Errorf("an aborted record was shown: %s", value)
		}
	}
	readAt(scene, 0, sarama.OffsetOldest, 15, nil)
	return nil, nil
}
