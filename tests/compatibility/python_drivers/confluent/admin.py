"""confluent-kafka (librdkafka): the admin client."""

from __future__ import annotations

from confluent_kafka import (
    ConsumerGroupTopicPartitions,
    TopicPartition,
)
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewPartitions,
    NewTopic,
    OffsetSpec,
    ResourceType,
)

from tests.compatibility.python_drivers.common import (
    PATIENCE_S,
    Said,
    Scene,
    expect_equal,
    wait_until,
)


def admin(scene: Scene) -> AdminClient:
    """To be kept in a variable: its futures end with it."""
    return AdminClient({"bootstrap.servers": scene.bootstrap, "log_level": 0})


def admin_create(scene: Scene) -> Said:
    client = admin(scene)
    made, gone = f"{scene.topic}-made", f"{scene.topic}-gone"
    wanted = [NewTopic(made, 2, config={"retention.ms": "3600000"}), NewTopic(gone, 1)]
    for future in client.create_topics(wanted).values():
        future.result(PATIENCE_S)
    client.create_partitions([NewPartitions(made, 3)])[made].result(PATIENCE_S)
    client.delete_topics([gone])[gone].result(PATIENCE_S)
    return None


def admin_describe(scene: Scene) -> Said:
    from confluent_kafka import TopicCollection

    client = admin(scene)
    shown = client.describe_topics(TopicCollection([scene.topic]))[scene.topic].result(PATIENCE_S)
    expect_equal(len(shown.partitions), 2, "partitions")
    assert scene.topic in client.list_topics(timeout=PATIENCE_S).topics
    cluster = client.describe_cluster().result(PATIENCE_S)
    assert cluster.nodes
    return {"cluster": cluster.cluster_id}


def admin_configs(scene: Scene) -> Said:
    client = admin(scene)
    change = ConfigEntry("retention.ms", "1234567", incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ResourceType.TOPIC, scene.topic, incremental_configs=[change])
    client.incremental_alter_configs([resource])[resource].result(PATIENCE_S)

    def is_shown() -> bool:  # any broker may be asked, and hears of it a moment later
        shown = client.describe_configs([resource])[resource].result(PATIENCE_S)
        return bool(shown["retention.ms"].value == "1234567")

    wait_until("the new value", is_shown)
    return None


def admin_delete_records(scene: Scene) -> Said:
    client = admin(scene)
    (future,) = client.delete_records([TopicPartition(scene.topic, 0, 4)]).values()
    future.result(PATIENCE_S)
    return None


def admin_groups(scene: Scene) -> Said:
    client = admin(scene)
    listed = client.list_consumer_groups().result(PATIENCE_S)
    assert scene.topic in {each.group_id for each in listed.valid}
    shown = client.describe_consumer_groups([scene.topic])[scene.topic].result(PATIENCE_S)
    expect_equal(shown.state.name, "EMPTY", "the group's state")
    return None


def admin_delete_group(scene: Scene) -> Said:
    client = admin(scene)
    client.delete_consumer_groups([scene.topic])[scene.topic].result(PATIENCE_S)
    return None


def admin_offsets(scene: Scene) -> Said:
    client = admin(scene)
    asked = ConsumerGroupTopicPartitions(scene.topic)
    shown = client.list_consumer_group_offsets([asked])[scene.topic].result(PATIENCE_S)
    expect_equal([each.offset for each in shown.topic_partitions], [7], "committed offsets")
    (future,) = client.list_offsets({TopicPartition(scene.topic, 0): OffsetSpec.latest()}).values()
    expect_equal(future.result(PATIENCE_S).offset, 10, "the end offset")
    return None


def admin_alter_offsets(scene: Scene) -> Said:
    wanted = ConsumerGroupTopicPartitions(scene.topic, [TopicPartition(scene.topic, 0, 3)])
    client = admin(scene)
    client.alter_consumer_group_offsets([wanted])[scene.topic].result(PATIENCE_S)
    return None
