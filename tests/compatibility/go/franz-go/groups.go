// Several members of one group.
package main

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	. "highwater/compatibility/cells"

	"github.com/twmb/franz-go/pkg/kgo"
)

type member struct {
	cl       *kgo.Client
	lock     sync.Mutex
	owned    map[int32]bool
	assigned int
	revoked  int
	read     map[string]bool
	stop     context.CancelFunc
	stopped  chan struct{}
}

func join(scene Scene, opts ...kgo.Opt) *member {
	m := &member{owned: map[int32]bool{}, read: map[string]bool{}, stopped: make(chan struct{})}
	opts = append(opts,
		kgo.OnPartitionsAssigned(func(_ context.Context, _ *kgo.Client, given map[string][]int32) { m.change(given, true) }),
		kgo.OnPartitionsRevoked(func(_ context.Context, _ *kgo.Client, taken map[string][]int32) { m.change(taken, false) }),
	)
	m.cl = subscribed(scene, opts...)
	ctx, stop := context.WithCancel(everything)
	m.stop = stop
	go m.run(ctx)
	return m
}

func (m *member) run(ctx context.Context) {
	defer close(m.stopped)
	for ctx.Err() == nil {
		fetches := m.cl.PollFetches(ctx)
		m.lock.Lock()
		fetches.EachRecord(func(r *kgo.Record) { m.read[fmt.Sprintf("%d/%d", r.Partition, r.Offset)] = true })
		m.lock.Unlock()
	}
}

func (m *member) change(partitions map[string][]int32, isGiven bool) {
	m.lock.Lock()
	defer m.lock.Unlock()
	for _, indexes := range partitions {
		for _, index := range indexes {
			if isGiven {
				m.assigned++
				m.owned[index] = true
			} else {
				m.revoked++
				delete(m.owned, index)
			}
		}
	}
}

func (m *member) partitions() []int32 {
	m.lock.Lock()
	defer m.lock.Unlock()
	return slices.Collect(maps.Keys(m.owned))
}

func (m *member) close() {
	m.stop()
	<-m.stopped
	Must(m.cl.CommitUncommittedOffsets(everything)) // so that the group is still there to be looked at
	m.cl.Close()
}

func settle(what string, owned int, members ...*member) {
	Until(what, func() bool {
		for _, m := range members {
			m.lock.Lock()
			count := len(m.owned)
			m.lock.Unlock()
			if count != owned {
				return false
			}
		}
		return true
	})
}

func distinct(members ...*member) int {
	all := map[string]bool{}
	for _, m := range members {
		m.lock.Lock()
		for each := range m.read {
			all[each] = true
		}
		m.lock.Unlock()
	}
	return len(all)
}

func group(opts ...kgo.Opt) Feature {
	return func(scene Scene) (map[string]any, error) {
		one, two, three := join(scene, opts...), join(scene, opts...), join(scene, opts...)
		defer one.close()
		defer two.close()
		defer three.close()
		settle("two partitions for each", 2, one, two, three)
		Until("all records", func() bool { return distinct(one, two, three) == 60 })
		return nil, nil
	}
}

func cooperative(scene Scene) (map[string]any, error) {
	balancer := kgo.Balancers(kgo.CooperativeStickyBalancer())
	first := join(scene, balancer)
	defer first.close()
	settle("all four", 4, first)
	second := join(scene, balancer)
	defer second.close()
	settle("two for each", 2, first, second)
	ExpectEqual(first.revoked, 2, "partitions taken from the first")
	return nil, nil
}

func staticMember(scene Scene) (map[string]any, error) {
	for range 2 {
		m := join(scene, kgo.InstanceID("fixed"), kgo.SessionTimeout(2*time.Minute))
		settle("its partition", 1, m)
		m.close()
	}
	return nil, nil
}

func rebalanceListener(scene Scene) (map[string]any, error) {
	balancer := kgo.Balancers(kgo.RangeBalancer())
	first := join(scene, balancer)
	defer first.close()
	settle("all four", 4, first)
	ExpectEqual(first.assigned, 4, "partitions that OnPartitionsAssigned heard of")
	second := join(scene, balancer)
	defer second.close()
	settle("two for each", 2, first, second)
	if first.revoked < 4 {
		return nil, fmt.Errorf("an eager member gives up everything: %d", first.revoked)
	}
	return nil, nil
}
