// Who gets which partition is the clients' own affair: the broker carries what their balancers say.
package main

import (
	"maps"
	"slices"

	. "highwater/compatibility/cells"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

func assignorCustom(scene Scene) (map[string]any, error) {
	members := map[string]*member{}
	for _, wish := range Wishes {
		members[wish] = join(scene, kgo.Balancers(wishing(wish)))
		defer members[wish].close()
	}
	Until("to each what it wished for", func() bool {
		for wish, m := range members {
			if !IsSame(m.partitions(), Indexes(wish)) {
				return false
			}
		}
		return true
	})
	Until("all records", func() bool { return distinct(slices.Collect(maps.Values(members))...) == 60 })
	return nil, nil
}

// A balancer of ours: to each member what it wishes for in its user data.
type wishing string

func (w wishing) ProtocolName() string { return "wish" }

func (w wishing) IsCooperative() bool { return false }

func (w wishing) JoinGroupMetadata(topics []string, _ map[string][]int32, _ int32) []byte {
	metadata := kmsg.NewConsumerMemberMetadata()
	metadata.Topics, metadata.UserData = topics, []byte(w)
	return metadata.AppendTo(nil)
}

func (w wishing) ParseSyncAssignment(assignment []byte) (map[string][]int32, error) {
	return kgo.ParseConsumerSyncAssignment(assignment)
}

func (w wishing) MemberBalancer(members []kmsg.JoinGroupResponseMember) (kgo.GroupMemberBalancer, map[string]struct{}, error) {
	balancer, err := kgo.NewConsumerBalancer(w, members)
	return balancer, balancer.MemberTopics(), err
}

func (w wishing) Balance(balancer *kgo.ConsumerBalancer, _ map[string]int32) kgo.IntoSyncAssignment {
	plan := balancer.NewPlan()
	balancer.EachMember(func(m *kmsg.JoinGroupResponseMember, metadata *kmsg.ConsumerMemberMetadata) {
		plan.AddPartitions(m, metadata.Topics[0], Indexes(string(metadata.UserData)))
	})
	return plan
}
