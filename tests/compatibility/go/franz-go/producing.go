// acks, ways to send, codecs, headers, idempotence, transactions.
package main

import (
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	. "highwater/compatibility/cells"

	"github.com/twmb/franz-go/pkg/kgo"
)

func acks(opts ...kgo.Opt) Feature {
	return func(scene Scene) (map[string]any, error) {
		cl := client(scene, opts...)
		defer cl.Close()
		offsets := []int64{}
		for _, value := range Values("value", 10) {
			stored := Got(cl.ProduceSync(everything, record(scene.Topic, 0, value)).First())
			offsets = append(offsets, stored.Offset)
		}
		if offsets[9] != 9 { // acks=0: nobody knows
			return nil, nil
		}
		return map[string]any{"offsets": offsets}, nil
	}
}

func sendForget(scene Scene) (map[string]any, error) {
	cl := client(scene)
	defer cl.Close()
	for _, value := range Values("value", 10) {
		cl.Produce(everything, record(scene.Topic, 0, value), nil)
	}
	return nil, cl.Flush(everything)
}

func sendCallback(scene Scene) (map[string]any, error) {
	cl := client(scene)
	defer cl.Close()
	var acked atomic.Int32
	for _, value := range Values("value", 10) {
		cl.Produce(everything, record(scene.Topic, 0, value), func(_ *kgo.Record, err error) {
			if err == nil {
				acked.Add(1)
			}
		})
	}
	Must(cl.Flush(everything))
	ExpectEqual(acked.Load(), 10, "callbacks without an error")
	return nil, nil
}

func codec(codec kgo.CompressionCodec) Feature {
	return func(scene Scene) (map[string]any, error) {
		// A batch that does not get smaller is left as it is, and on a busy machine one may have a single record.
		sent := Values(strings.Repeat("value", 50), 50)
		writer := client(scene, kgo.ProducerBatchCompression(codec), kgo.ProducerLinger(50*time.Millisecond))
		defer writer.Close()
		for _, value := range sent {
			writer.Produce(everything, record(scene.Topic, 0, value), nil)
		}
		Must(writer.Flush(everything))
		reader := assigned(scene, 1)
		defer reader.Close()
		ExpectEqual(values(read(reader, 50)), sent, "what was read")
		return nil, nil
	}
}

func headers(scene Scene) (map[string]any, error) {
	writer := client(scene)
	defer writer.Close()
	sent := record(scene.Topic, 0, "value-0")
	sent.Headers = []kgo.RecordHeader{{Key: "trace", Value: []byte("1")}, {Key: "trace", Value: []byte("2")}, {Key: "empty", Value: []byte{}}}
	Must(writer.ProduceSync(everything, sent).FirstErr())
	reader := assigned(scene, 1)
	defer reader.Close()
	said := []string{}
	for _, header := range read(reader, 1)[0].Headers {
		said = append(said, header.Key+"="+string(header.Value))
	}
	return map[string]any{"headers": said}, nil
}

func idempotent(scene Scene) (map[string]any, error) {
	cl := client(scene) // it always is, unless told otherwise
	defer cl.Close()
	send(cl, scene.Topic, 0, "value", 20)
	return nil, nil
}

// -- transactions

func begun(scene Scene) *kgo.Client {
	cl := client(scene, kgo.TransactionalID(scene.Topic))
	_, _, err := cl.ProducerID(everything) // InitProducerId now, so that an older producer is fenced
	Must(err)
	Must(cl.BeginTransaction())
	return cl
}

func txnCommit(scene Scene) (map[string]any, error) {
	cl := begun(scene)
	defer cl.Close()
	for partition := range int32(2) {
		send(cl, scene.Topic, partition, "kept", 5)
	}
	return nil, cl.EndTransaction(everything, kgo.TryCommit)
}

func txnAbort(scene Scene) (map[string]any, error) {
	cl := begun(scene)
	defer cl.Close()
	send(cl, scene.Topic, 0, "dropped", 5)
	Must(cl.EndTransaction(everything, kgo.TryAbort))
	Must(cl.BeginTransaction())
	send(cl, scene.Topic, 0, "kept", 5)
	return nil, cl.EndTransaction(everything, kgo.TryCommit)
}

func txnFencing(scene Scene) (map[string]any, error) {
	old := begun(scene)
	defer old.Close()
	send(old, scene.Topic, 0, "dropped", 5)
	current := begun(scene)
	defer current.Close()
	send(current, scene.Topic, 0, "kept", 5)
	Must(current.EndTransaction(everything, kgo.TryCommit))
	err := old.EndTransaction(everything, kgo.TryCommit)
	if err == nil {
		return nil, fmt.Errorf("the old producer could commit")
	}
	return map[string]any{"error": err.Error()}, nil
}

func txnOffsets(scene Scene) (map[string]any, error) {
	session := Got(kgo.NewGroupTransactSession(
		kgo.SeedBrokers(scene.Bootstrap...), kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.TransactionalID(scene.Topic),
		kgo.ConsumerGroup(scene.Topic), kgo.ConsumeTopics(scene.Topic), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.FetchIsolationLevel(kgo.ReadCommitted()), kgo.RequireStableFetchOffsets(),
	))
	defer session.Close()
	records := read(session.Client(), 10)
	Must(session.Begin())
	for _, each := range records {
		Must(session.ProduceSync(everything, record(scene.Topic+"-out", 0, "seen-"+string(each.Value))).FirstErr())
	}
	committed, err := session.End(everything, kgo.TryCommit)
	Must(err)
	ExpectEqual(committed, true, "committed")
	return nil, nil
}

func readCommitted(scene Scene) (map[string]any, error) {
	reader := assigned(scene, 1, kgo.FetchIsolationLevel(kgo.ReadCommitted()))
	defer reader.Close()
	for _, value := range values(read(reader, 10)) {
		if !strings.HasPrefix(value, "kept") {
			return nil, fmt.Errorf("an aborted record was shown: %s", value)
		}
	}
	all := assigned(scene, 1)
	defer all.Close()
	ExpectEqual(len(read(all, 15)), 15, "records of all transactions")
	return nil, nil
}
