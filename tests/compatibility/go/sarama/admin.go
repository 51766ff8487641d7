// The admin client.
package main

import (
	"errors"

	. "highwater/compatibility/cells"

	"github.com/IBM/sarama"
)

func admin(play func(adm sarama.ClusterAdmin, scene Scene) error) Feature {
	return func(scene Scene) (map[string]any, error) {
		adm := Got(sarama.NewClusterAdmin(scene.Bootstrap, config(nil)))
		defer adm.Close()
		return nil, play(adm, scene)
	}
}

func adminCreate(adm sarama.ClusterAdmin, scene Scene) error {
	hour := "3600000"
	made, gone := scene.Topic+"-made", scene.Topic+"-gone"
	Must(adm.CreateTopic(made, &sarama.TopicDetail{NumPartitions: 2, ReplicationFactor: 1, ConfigEntries: map[string]*string{"retention.ms": &hour}}, false))
	Must(adm.CreateTopic(gone, &sarama.TopicDetail{NumPartitions: 1, ReplicationFactor: 1}, false))
	Must(adm.CreatePartitions(made, 3, nil, false))
	return adm.DeleteTopic(gone)
}

func adminDescribe(adm sarama.ClusterAdmin, scene Scene) error {
	ExpectEqual(len(Got(adm.DescribeTopics([]string{scene.Topic}))[0].Partitions), 2, "partitions")
	if _, ok := Got(adm.ListTopics())[scene.Topic]; !ok {
		return errors.New("the topic is not listed")
	}
	brokers, _, err := adm.DescribeCluster()
	if len(brokers) == 0 {
		return errors.New("there are no brokers")
	}
	return err
}

func adminConfigs(adm sarama.ClusterAdmin, scene Scene) error {
	wanted := "1234567"
	change := map[string]sarama.IncrementalAlterConfigsEntry{"retention.ms": {Operation: sarama.IncrementalAlterConfigsOperationSet, Value: &wanted}}
	Must(adm.IncrementalAlterConfig(sarama.TopicResource, scene.Topic, change, false))
	asked := sarama.ConfigResource{Type: sarama.TopicResource, Name: scene.Topic, ConfigNames: []string{"retention.ms"}}
	Until("the new value", func() bool { return Got(adm.DescribeConfig(asked))[0].Value == wanted }) // any broker is asked
	return nil
}

func adminDeleteRecords(adm sarama.ClusterAdmin, scene Scene) error {
	return adm.DeleteRecords(scene.Topic, map[int32]int64{0: 4})
}

func adminGroups(adm sarama.ClusterAdmin, scene Scene) error {
	if _, ok := Got(adm.ListConsumerGroups())[scene.Topic]; !ok {
		return errors.New("the group is not listed")
	}
	ExpectEqual(Got(adm.DescribeConsumerGroups([]string{scene.Topic}))[0].State, "Empty", "the group's state")
	return nil
}

func adminDeleteGroup(adm sarama.ClusterAdmin, scene Scene) error {
	return adm.DeleteConsumerGroup(scene.Topic)
}

func adminOffsets(adm sarama.ClusterAdmin, scene Scene) error {
	shown := Got(adm.ListConsumerGroupOffsets(scene.Topic, map[string][]int32{scene.Topic: {0}}))
	ExpectEqual(shown.GetBlock(scene.Topic, 0).Offset, 7, "the committed offset")
	return nil
}

func adminAlterOffsets(adm sarama.ClusterAdmin, scene Scene) error {
	wanted := map[string]map[int32]sarama.OffsetAndMetadata{scene.Topic: {0: {Offset: 3, LeaderEpoch: -1}}}
	_, err := adm.AlterConsumerGroupOffsets(scene.Topic, wanted, nil)
	return err
}
