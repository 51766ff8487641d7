// Who gets which partition is the clients' own affair: the broker carries what their strategies say.
package main

import (
	"maps"
	"slices"

	. "highwater/compatibility/cells"

	"github.com/IBM/sarama"
)

func balancedBy(strategy sarama.BalanceStrategy) func(*sarama.Config) {
	return func(c *sarama.Config) {
		c.Consumer.Group.Rebalance.GroupStrategies = []sarama.BalanceStrategy{strategy}
	}
}

func assignorSticky(scene Scene) (map[string]any, error) {
	begin := func() *member { return keeping(scene, balancedBy(sarama.NewBalanceStrategySticky())) }
	leaving, staying := begin(), begin()
	defer staying.close()
	settle("three for each", 3, leaving, staying)
	leavingHad, stayingHad := leaving.partitions(), staying.partitions()
	joining := begin()
	defer joining.close()
	settle("two for each", 2, leaving, staying, joining)
	ExpectWithin(leaving.partitions(), leavingHad)
	ExpectWithin(staying.partitions(), stayingHad)
	stayingKept, joiningHad := staying.partitions(), joining.partitions()
	leaving.close()
	settle("three for each again", 3, staying, joining)
	ExpectWithin(stayingKept, staying.partitions())
	ExpectWithin(joiningHad, joining.partitions())
	return nil, nil
}

func assignorCustom(scene Scene) (map[string]any, error) {
	members := map[string]*member{}
	for _, wish := range Wishes {
		members[wish] = keeping(scene, func(c *sarama.Config) {
			balancedBy(wishing{})(c)
			c.Consumer.Group.Member.UserData = []byte(wish)
		})
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

// A member that commits what it reads, so that the group is still there to be looked at.
func keeping(scene Scene, change func(*sarama.Config)) *member {
	return (&member{topic: scene.Topic, isMarked: true}).start(scene, func(c *sarama.Config) {
		c.Consumer.Offsets.AutoCommit.Enable = true
		change(c)
	})
}

// A strategy of ours: to each member what it wishes for in its user data.
type wishing struct{}

func (wishing) Name() string { return "wish" }

func (wishing) Plan(members map[string]sarama.ConsumerGroupMemberMetadata, _ map[string][]int32) (sarama.BalanceStrategyPlan, error) {
	plan := sarama.BalanceStrategyPlan{}
	for id, metadata := range members {
		plan.Add(id, metadata.Topics[0], Indexes(string(metadata.UserData))...)
	}
	return plan, nil
}

func (wishing) AssignmentData(string, map[string][]int32, int32) ([]byte, error) { return nil, nil }
