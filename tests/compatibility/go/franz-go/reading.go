// One reader: pause, seek, commits, and where it begins without an offset.
package main

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	. "highwater/compatibility/cells"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

func regex(scene Scene) (map[string]any, error) {
	cl := client(scene, kgo.ConsumerGroup(scene.Topic), kgo.ConsumeRegex(), kgo.ConsumeTopics("^"+scene.Topic+"-[ab]$"),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.DisableAutoCommit())
	defer cl.Close()
	topics := map[string]bool{}
	for _, each := range read(cl, 10) {
		topics[each.Topic] = true
	}
	ExpectEqual(topics, map[string]bool{scene.Topic + "-a": true, scene.Topic + "-b": true}, "topics read")
	return nil, nil
}

func pauseResume(scene Scene) (map[string]any, error) {
	cl := assigned(scene, 2)
	defer cl.Close()
	second := map[string][]int32{scene.Topic: {1}}
	cl.PauseFetchPartitions(second)
	for _, each := range read(cl, 5) {
		ExpectEqual(each.Partition, 0, "while 1 was paused, a record's partition")
	}
	ExpectEqual(len(poll(cl, 300*time.Millisecond, 10)), 0, "records of a paused partition")
	cl.ResumeFetchPartitions(second)
	for _, each := range read(cl, 5) {
		ExpectEqual(each.Partition, 1, "after it was resumed, a record's partition")
	}
	return nil, nil
}

func seek(scene Scene) (map[string]any, error) {
	cl := assigned(scene, 1)
	defer cl.Close()
	read(cl, 1)
	for _, offset := range []int64{7, 0} {
		cl.SetOffsets(map[string]map[int32]kgo.EpochOffset{scene.Topic: {0: {Epoch: -1, Offset: offset}}})
		ExpectEqual(read(cl, 3)[0].Offset, offset, "the first offset after SetOffsets")
	}
	return nil, nil
}

func outsideStore(scene Scene) (map[string]any, error) {
	store := Got(os.CreateTemp("", "offset")).Name()
	defer os.Remove(store)
	first := subscribed(scene)
	for _, each := range read(first, 5) {
		Must(os.WriteFile(store, []byte(strconv.FormatInt(each.Offset+1, 10)), 0o600))
	}
	first.Close()
	stored := Got(strconv.ParseInt(string(Got(os.ReadFile(store))), 10, 64))
	again := subscribed(scene, kgo.AdjustFetchOffsetsFn(
		func(_ context.Context, offsets map[string]map[int32]kgo.Offset) (map[string]map[int32]kgo.Offset, error) {
			for _, partitions := range offsets {
				for index := range partitions {
					partitions[index] = kgo.NewOffset().At(stored)
				}
			}
			return offsets, nil
		}))
	defer again.Close()
	ExpectEqual(read(again, 5)[0].Offset, stored, "the first offset after the restart")
	return nil, nil
}

type marking struct{ read atomic.Int32 }

func (*marking) OnProduceRecordBuffered(r *kgo.Record) { r.Value = append(r.Value, "-marked"...) }
func (m *marking) OnFetchRecordBuffered(*kgo.Record)   { m.read.Add(1) }

func interceptors(scene Scene) (map[string]any, error) {
	hook := &marking{}
	writer := client(scene, kgo.WithHooks(hook))
	defer writer.Close()
	send(writer, scene.Topic, 0, "value", 5)
	reader := assigned(scene, 1, kgo.WithHooks(hook))
	defer reader.Close()
	read(reader, 5)
	ExpectEqual(hook.read.Load(), 5, "records that the hook saw")
	return nil, nil
}

// -- commits

func commitAuto(scene Scene) (map[string]any, error) {
	cl := client(scene, kgo.ConsumerGroup(scene.Topic), kgo.ConsumeTopics(scene.Topic),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.AutoCommitInterval(100*time.Millisecond))
	read(cl, 10)
	poll(cl, 300*time.Millisecond, 1)
	cl.Close()
	return nil, nil
}

func at(scene Scene, offset int64) map[string]map[int32]kgo.EpochOffset {
	return map[string]map[int32]kgo.EpochOffset{scene.Topic: {0: {Epoch: -1, Offset: offset}}}
}

func commitSync(scene Scene) (map[string]any, error) {
	cl := subscribed(scene)
	defer cl.Close()
	Must(cl.CommitRecords(everything, read(cl, 10)...))
	var problem error
	cl.CommitOffsetsSync(everything, at(scene, 4), func(_ *kgo.Client, _ *kmsg.OffsetCommitRequest, _ *kmsg.OffsetCommitResponse, err error) {
		problem = err
	})
	return nil, problem
}

func commitAsync(scene Scene) (map[string]any, error) {
	cl := subscribed(scene)
	defer cl.Close()
	read(cl, 10)
	heard := make(chan error, 1)
	cl.CommitOffsets(everything, at(scene, 6), func(_ *kgo.Client, _ *kmsg.OffsetCommitRequest, _ *kmsg.OffsetCommitResponse, err error) {
		heard <- err
	})
	return nil, <-heard
}

// -- where a reader without an offset begins

func resetEarliest(start int64) Feature {
	return func(scene Scene) (map[string]any, error) {
		cl := subscribed(scene)
		defer cl.Close()
		ExpectEqual(read(cl, 5)[0].Offset, start, "the first offset")
		return nil, nil
	}
}

func resetLatest(scene Scene) (map[string]any, error) {
	reader := subscribed(scene, kgo.ConsumeResetOffset(kgo.NewOffset().AtEnd()))
	defer reader.Close()
	writer := client(scene)
	defer writer.Close()
	var got []*kgo.Record
	Until("a record that is written later", func() bool {
		Must(writer.ProduceSync(everything, record(scene.Topic, 0, "later")).FirstErr())
		got = append(got, poll(reader, 200*time.Millisecond, 10)...)
		return len(got) > 0
	})
	ExpectEqual(string(got[0].Value), "later", "the first record")
	return nil, nil
}

func resetNone(scene Scene) (said map[string]any, err error) {
	reader := subscribed(scene, kgo.ConsumeResetOffset(kgo.NoResetOffset()))
	defer reader.Close()
	defer func() {
		if problem := recover(); problem != nil && strings.Contains(fmt.Sprint(problem), "OFFSET_OUT_OF_RANGE") {
			said, err = map[string]any{"error": fmt.Sprint(problem)}, nil
		}
	}()
	read(reader, 1)
	return nil, fmt.Errorf("no error was raised")
}
