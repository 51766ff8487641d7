// franz-go, unmodified.
package main

import (
	"context"
	"fmt"
	"time"

	. "highwater/compatibility/cells"

	"github.com/twmb/franz-go/pkg/kgo"
)

var everything = context.Background()

func client(scene Scene, opts ...kgo.Opt) *kgo.Client {
	basis := []kgo.Opt{kgo.SeedBrokers(scene.Bootstrap...), kgo.RecordPartitioner(kgo.ManualPartitioner())}
	return Got(kgo.NewClient(append(basis, opts...)...))
}

// Reads by assignment, from the beginning.
func assigned(scene Scene, partitions int, opts ...kgo.Opt) *kgo.Client {
	offsets := map[int32]kgo.Offset{}
	for i := range partitions {
		offsets[int32(i)] = kgo.NewOffset().AtStart()
	}
	return client(scene, append(opts, kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{scene.Topic: offsets}))...)
}

// A member of the group named as the topic, without auto commit.
func subscribed(scene Scene, opts ...kgo.Opt) *kgo.Client {
	basis := []kgo.Opt{
		kgo.ConsumerGroup(scene.Topic), kgo.ConsumeTopics(scene.Topic), kgo.DisableAutoCommit(),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.HeartbeatInterval(300 * time.Millisecond),
	}
	return client(scene, append(basis, opts...)...)
}

func record(topic string, partition int32, value string) *kgo.Record {
	return &kgo.Record{Topic: topic, Partition: partition, Value: []byte(value)}
}

func send(cl *kgo.Client, topic string, partition int32, word string, count int) {
	for _, value := range Values(word, count) {
		Must(cl.ProduceSync(everything, record(topic, partition, value)).FirstErr())
	}
}

func poll(cl *kgo.Client, wait time.Duration, count int) []*kgo.Record {
	ctx, cancel := context.WithTimeout(everything, wait)
	defer cancel()
	fetches := cl.PollRecords(ctx, count)
	fetches.EachError(func(_ string, _ int32, err error) {
		if ctx.Err() == nil {
			panic(err)
		}
	})
	return fetches.Records()
}

func read(cl *kgo.Client, count int) (got []*kgo.Record) {
	Until(fmt.Sprintf("%d records", count), func() bool {
		got = append(got, poll(cl, 300*time.Millisecond, count-len(got))...)
		return len(got) >= count
	})
	return got
}

func values(records []*kgo.Record) (values []string) {
	for _, each := range records {
		values = append(values, string(each.Value))
	}
	return values
}

func main() {
	Main(map[string]Feature{
		"acks-0":                 acks(kgo.RequiredAcks(kgo.NoAck()), kgo.DisableIdempotentWrite()),
		"acks-1":                 acks(kgo.RequiredAcks(kgo.LeaderAck()), kgo.DisableIdempotentWrite()),
		"acks-all":               acks(),
		"send-forget":            sendForget,
		"send-sync":              acks(),
		"send-callback":          sendCallback,
		"codec-none":             codec(kgo.NoCompression()),
		"codec-gzip":             codec(kgo.GzipCompression()),
		"codec-snappy":           codec(kgo.SnappyCompression()),
		"codec-lz4":              codec(kgo.Lz4Compression()),
		"codec-zstd":             codec(kgo.ZstdCompression()),
		"headers":                headers,
		"idempotent":             idempotent,
		"txn-commit":             txnCommit,
		"txn-abort":              txnAbort,
		"txn-fencing":            txnFencing,
		"txn-offsets":            txnOffsets,
		"read-committed":         readCommitted,
		"group-classic":          group(kgo.Balancers(kgo.RangeBalancer())),
		"group-848":              group(kgo.Balancers(kgo.StickyBalancer()), kgo.ServerSideBalancer()),
		"cooperative":            cooperative,
		"assignor-custom":        assignorCustom,
		"static-member":          staticMember,
		"rebalance-listener":     rebalanceListener,
		"regex":                  regex,
		"pause-resume":           pauseResume,
		"seek":                   seek,
		"outside-store":          outsideStore,
		"interceptors":           interceptors,
		"commit-auto":            commitAuto,
		"commit-sync":            commitSync,
		"commit-async":           commitAsync,
		"reset-earliest-new":     resetEarliest(0),
		"reset-earliest-expired": resetEarliest(0),
		"reset-earliest-trimmed": resetEarliest(5),
		"reset-latest-new":       resetLatest,
		"reset-latest-expired":   resetLatest,
		"reset-latest-trimmed":   resetLatest,
		"reset-none-trimmed":     resetNone,
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
