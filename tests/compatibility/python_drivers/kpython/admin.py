"""kafka-python: the admin client."""

from __future__ import annotations

from kafka import (
    KafkaAdminClient,
    OffsetAndMetadata,
    TopicPartition,
)
from kafka.admin import ConfigResource, NewTopic, OffsetSpec

from tests.compatibility.python_drivers.common import (
    Said,
    Scene,
    expect_equal,
    wait_until,
)


def admin(scene: Scene) -> KafkaAdminClient:
    return KafkaAdminClient(bootstrap_servers=scene.bootstrap)


def admin_create(scene: Scene) -> Said:
    made, gone = f"{scene.topic}-made", f"{scene.topic}-gone"
    client = admin(scene)
    client.create_topics([NewTopic(made, 2, 1, topic_configs={"retention.ms": "3600000"}), NewTopic(gone, 1, 1)])
    client.create_partitions({made: 3})
    client.delete_topics([gone])
    client.close()
    return None


def admin_describe(scene: Scene) -> Said:
    client = admin(scene)
    (shown,) = client.describe_topics([scene.topic])
    expect_equal(len(shown["partitions"]), 2, "partitions")
    assert scene.topic in client.list_topics()
    cluster = client.describe_cluster()
    client.close()
    assert cluster["brokers"]
    return {"cluster": cluster["cluster_id"]}


def admin_configs(scene: Scene) -> Said:
    client = admin(scene)
    client.alter_configs([ConfigResource("topic", scene.topic, configs={"retention.ms": "1234567"})])

    def is_shown() -> bool:  # any broker may be asked, and hears of it a moment later
        shown = client.describe_configs([ConfigResource("topic", scene.topic)])["topic"][scene.topic]
        return bool(shown.get("retention.ms", {}).get("value") == "1234567")

    wait_until("the new value", is_shown)
    client.close()
    return None


def admin_delete_records(scene: Scene) -> Said:
    client = admin(scene)
    client.delete_records({TopicPartition(scene.topic, 0): 4})
    client.close()
    return None


def admin_groups(scene: Scene) -> Said:
    client = admin(scene)
    assert scene.topic in {each["group_id"] for each in client.list_groups()}
    state = client.describe_groups([scene.topic])[scene.topic]["group_state"]
    client.close()
    expect_equal(state, "Empty", "the group's state")
    return None


def admin_delete_group(scene: Scene) -> Said:
    client = admin(scene)
    expect_equal(client.delete_groups([scene.topic]), {scene.topic: "OK"}, "what it said")
    client.close()
    return None


def admin_offsets(scene: Scene) -> Said:
    partition = TopicPartition(scene.topic, 0)
    client = admin(scene)
    committed = client.list_group_offsets(scene.topic)[scene.topic][partition].offset
    end = client.list_partition_offsets({partition: OffsetSpec.LATEST})[partition].offset
    client.close()
    expect_equal((committed, end), (7, 10), "the committed and the end offset")
    return None


def admin_alter_offsets(scene: Scene) -> Said:
    client = admin(scene)
    client.alter_group_offsets(scene.topic, {TopicPartition(scene.topic, 0): OffsetAndMetadata(3, "moved", -1)})
    client.close()
    return None
