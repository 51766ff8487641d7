// Several members of one group.
package main

import (
	"context"
	"fmt"
	"sync"
	"time"

	. "highwater/compatibility/cells"

	"github.com/IBM/sarama"
)

type member struct {
	group    sarama.ConsumerGroup
	topic    string
	lock     sync.Mutex
	got      []*sarama.ConsumerMessage
	owned    []int32
	setups   int
	cleanups int
	problem  error
	session  sarama.ConsumerGroupSession
	onSetup  func(sarama.ConsumerGroupSession)
	isMarked bool
	stop     context.CancelFunc
	stopped  chan struct{}
}

func join(scene Scene, change func(*sarama.Config)) *member {
	return (&member{topic: scene.Topic}).start(scene, change)
}

func (m *member) start(scene Scene, change func(*sarama.Config)) *member {
	m.group = Got(sarama.NewConsumerGroup(scene.Bootstrap, scene.Topic, config(change)))
	m.stopped = make(chan struct{})
	ctx, stop := context.WithCancel(context.Background())
	m.stop = stop
	go func() {
		defer close(m.stopped)
		for ctx.Err() == nil {
			if err := m.group.Consume(ctx, []string{scene.Topic}, m); err != nil && ctx.Err() == nil {
				m.lock.Lock()
				m.problem = err
				m.lock.Unlock()
				return
			}
		}
	}()
	return m
}

func (m *member) Setup(session sarama.ConsumerGroupSession) error {
	m.lock.Lock()
	defer m.lock.Unlock()
	m.setups++
	m.session = session
	m.owned = session.Claims()[m.topic]
	if m.onSetup != nil {
		m.onSetup(session)
	}
	return nil
}

func (m *member) Cleanup(sarama.ConsumerGroupSession) error {
	m.lock.Lock()
	defer m.lock.Unlock()
	m.cleanups++
	m.owned = nil
	return nil
}

func (m *member) ConsumeClaim(session sarama.ConsumerGroupSession, claim sarama.ConsumerGroupClaim) error {
	for each := range claim.Messages() {
		m.lock.Lock()
		m.got = append(m.got, each)
		if m.isMarked {
			session.MarkMessage(each, "")
		}
		m.lock.Unlock()
	}
	return nil
}

func (m *member) seen() []*sarama.ConsumerMessage {
	m.lock.Lock()
	defer m.lock.Unlock()
	Must(m.problem)
	return m.got
}

func (m *member) reads(count int) []*sarama.ConsumerMessage {
	Until(fmt.Sprintf("%d records", count), func() bool { return len(m.seen()) >= count })
	return m.seen()
}

func (m *member) partitions() []int32 {
	m.lock.Lock()
	defer m.lock.Unlock()
	Must(m.problem)
	return m.owned
}

func (m *member) close() {
	m.stop()
	<-m.stopped
	m.group.Close()
}

func settle(what string, owned int, members ...*member) {
	Until(what, func() bool {
		for _, m := range members {
			if len(m.partitions()) != owned {
				return false
			}
		}
		return true
	})
}

func distinct(members ...*member) int {
	all := map[string]bool{}
	for _, m := range members {
		for _, each := range m.seen() {
			all[fmt.Sprintf("%d/%d", each.Partition, each.Offset)] = true
		}
	}
	return len(all)
}

func groupClassic(scene Scene) (map[string]any, error) {
	members := []*member{join(scene, nil), join(scene, nil), join(scene, nil)}
	for _, m := range members {
		defer m.close()
	}
	settle("two partitions for each", 2, members...)
	Until("all records", func() bool { return distinct(members...) == 60 })
	members[0].session.MarkMessage(members[0].seen()[0], "")
	members[0].session.Commit() // so that the group is still there to be looked at
	return nil, nil
}

func staticMember(scene Scene) (map[string]any, error) {
	for range 2 {
		m := join(scene, func(c *sarama.Config) {
			c.Consumer.Group.InstanceId = "fixed"
			c.Consumer.Group.Session.Timeout = 2 * time.Minute
		})
		settle("its partition", 1, m)
		m.close()
	}
	return nil, nil
}

func rebalanceListener(scene Scene) (map[string]any, error) {
	first := join(scene, nil)
	defer first.close()
	settle("all four", 4, first)
	second := join(scene, nil)
	defer second.close()
	settle("two for each", 2, first, second)
	if first.setups < 2 || first.cleanups < 1 {
		return nil, fmt.Errorf("heard %d set-ups, %d clean-ups", first.setups, first.cleanups)
	}
	return nil, nil
}
