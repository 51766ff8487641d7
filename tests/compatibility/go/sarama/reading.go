// One reader: pause, seek, commits, and where it begins without an offset.
package main

import (
	"os"
	"strconv"
	"sync/atomic"
	"time"

	. "highwater/compatibility/cells"

	"github.com/IBM/sarama"
)

func pauseResume(scene Scene) (map[string]any, error) {
	consumer := Got(sarama.NewConsumer(scene.Bootstrap, config(nil)))
	defer consumer.Close()
	first := Got(consumer.ConsumePartition(scene.Topic, 0, sarama.OffsetOldest))
	defer first.Close()
	consumer.Pause(map[string][]int32{scene.Topic: {1}})
	second := Got(consumer.ConsumePartition(scene.Topic, 1, sarama.OffsetOldest))
	defer second.Close()
	second.Pause()
	take(first, 5)
	second.Resume()
	take(second, 5)
	return nil, nil
}

func seek(scene Scene) (map[string]any, error) {
	for _, offset := range []int64{7, 0} {
		ExpectEqual(readAt(scene, 0, offset, 3, nil)[0].Offset, offset, "the first offset")
	}
	return nil, nil
}

func outsideStore(scene Scene) (map[string]any, error) {
	store := Got(os.CreateTemp("", "offset")).Name()
	defer os.Remove(store)
	first := join(scene, nil)
	Must(os.WriteFile(store, []byte(strconv.FormatInt(first.reads(5)[4].Offset+1, 10)), 0o600))
	first.close()
	stored := Got(strconv.ParseInt(string(Got(os.ReadFile(store))), 10, 64))
	again := &member{topic: scene.Topic, onSetup: func(session sarama.ConsumerGroupSession) {
		session.MarkOffset(scene.Topic, 0, stored, "") // moves the position; nothing is committed without Commit
	}}
	again.start(scene, nil)
	defer again.close()
	ExpectEqual(again.reads(5)[0].Offset, stored, "the first offset after the restart")
	return nil, nil
}

type marking struct{ read atomic.Int32 }

func (*marking) OnSend(sent *sarama.ProducerMessage) {
	sent.Value = sarama.StringEncoder(string(Got(sent.Value.Encode())) + "-marked")
}
func (m *marking) OnConsume(*sarama.ConsumerMessage) { m.read.Add(1) }

func interceptors(scene Scene) (map[string]any, error) {
	hook := &marking{}
	writer := producer(scene, func(c *sarama.Config) { c.Producer.Interceptors = []sarama.ProducerInterceptor{hook} })
	defer writer.Close()
	send(writer, scene.Topic, 0, "value", 5)
	readAt(scene, 0, sarama.OffsetOldest, 5, func(c *sarama.Config) { c.Consumer.Interceptors = []sarama.ConsumerInterceptor{hook} })
	ExpectEqual(hook.read.Load(), 5, "records that the interceptor saw")
	return nil, nil
}

// -- commits

func commitAuto(scene Scene) (map[string]any, error) {
	m := &member{topic: scene.Topic, isMarked: true}
	m.start(scene, func(c *sarama.Config) {
		c.Consumer.Offsets.AutoCommit.Enable = true
		c.Consumer.Offsets.AutoCommit.Interval = 100 * time.Millisecond
	})
	m.reads(10)
	m.close()
	return nil, nil
}

func commitSync(scene Scene) (map[string]any, error) {
	m := join(scene, nil)
	defer m.close()
	for _, each := range m.reads(10) {
		m.session.MarkMessage(each, "")
	}
	m.session.Commit()
	m.session.ResetOffset(scene.Topic, 0, 4, "note")
	m.session.Commit()
	return nil, nil
}

// -- where a reader without an offset begins

func resetEarliest(start int64) Feature {
	return func(scene Scene) (map[string]any, error) {
		m := join(scene, nil)
		defer m.close()
		ExpectEqual(m.reads(5)[0].Offset, start, "the first offset")
		return nil, nil
	}
}

func resetLatest(scene Scene) (map[string]any, error) {
	m := join(scene, func(c *sarama.Config) { c.Consumer.Offsets.Initial = sarama.OffsetNewest })
	defer m.close()
	writer := producer(scene, nil)
	defer writer.Close()
	Until("a record that is written later", func() bool {
		Must(writer.SendMessages([]*sarama.ProducerMessage{message(scene.Topic, 0, "later")}))
		time.Sleep(200 * time.Millisecond)
		return len(m.seen()) > 0
	})
	ExpectEqual(string(m.seen()[0].Value), "later", "the first record")
	return nil, nil
}
