// The admin client.
package main

import (
	"fmt"

	. "highwater/compatibility/cells"

	"github.com/twmb/franz-go/pkg/kadm"
)

func admin(play func(adm *kadm.Client, scene Scene) error) Feature {
	return func(scene Scene) (map[string]any, error) {
		cl := client(scene)
		defer cl.Close()
		return nil, play(kadm.NewClient(cl), scene)
	}
}

func adminCreate(adm *kadm.Client, scene Scene) error {
	hour := "3600000"
	Must(Got(adm.CreateTopics(everything, 2, -1, map[string]*string{"retention.ms": &hour}, scene.Topic+"-made")).Error())
	Must(Got(adm.CreateTopics(everything, 1, -1, nil, scene.Topic+"-gone")).Error())
	Must(Got(adm.UpdatePartitions(everything, 3, scene.Topic+"-made")).Error())
	return Got(adm.DeleteTopics(everything, scene.Topic+"-gone")).Error()
}

func adminDescribe(adm *kadm.Client, scene Scene) error {
	topics := Got(adm.ListTopics(everything, scene.Topic))
	ExpectEqual(len(topics[scene.Topic].Partitions), 2, "partitions")
	if len(Got(adm.BrokerMetadata(everything)).Brokers) == 0 {
		return fmt.Errorf("there are no brokers")
	}
	return topics.Error()
}

func adminConfigs(adm *kadm.Client, scene Scene) error {
	wanted := "1234567"
	for _, each := range Got(adm.AlterTopicConfigs(everything, []kadm.AlterConfig{{Op: kadm.SetConfig, Name: "retention.ms", Value: &wanted}}, scene.Topic)) {
		Must(each.Err)
	}
	Until("the new value, which any broker may be asked for", func() bool {
		for _, config := range Got(Got(adm.DescribeTopicConfigs(everything, scene.Topic)).On(scene.Topic, nil)).Configs {
			if config.Key == "retention.ms" && config.MaybeValue() == wanted {
				return true
			}
		}
		return false
	})
	return nil
}

func offsets(scene Scene, offset int64) kadm.Offsets {
	wanted := kadm.Offsets{}
	wanted.AddOffset(scene.Topic, 0, offset, -1)
	return wanted
}

func adminDeleteRecords(adm *kadm.Client, scene Scene) error {
	return Got(adm.DeleteRecords(everything, offsets(scene, 4))).Error()
}

func adminGroups(adm *kadm.Client, scene Scene) error {
	if _, ok := Got(adm.ListGroups(everything))[scene.Topic]; !ok {
		return fmt.Errorf("the group is not listed")
	}
	ExpectEqual(Got(adm.DescribeGroups(everything, scene.Topic))[scene.Topic].State, "Empty", "the group's state")
	return nil
}

func adminDeleteGroup(adm *kadm.Client, scene Scene) error {
	return Got(adm.DeleteGroup(everything, scene.Topic)).Err
}

func adminOffsets(adm *kadm.Client, scene Scene) error {
	ExpectEqual(Got(adm.FetchOffsets(everything, scene.Topic))[scene.Topic][0].At, 7, "the committed offset")
	ExpectEqual(Got(adm.ListEndOffsets(everything, scene.Topic))[scene.Topic][0].Offset, 10, "the end offset")
	return nil
}

func adminAlterOffsets(adm *kadm.Client, scene Scene) error {
	return adm.CommitAllOffsets(everything, scene.Topic, offsets(scene, 3))
}
