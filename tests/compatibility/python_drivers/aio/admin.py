"""aiokafka: the admin client."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator

from aiokafka import TopicPartition
from aiokafka.admin import AIOKafkaAdminClient, NewPartitions, NewTopic, RecordsToDelete
from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType

from tests.compatibility.python_drivers.common import (
    Said,
    Scene,
    expect_equal,
)


@contextlib.asynccontextmanager
async def admin(scene: Scene) -> AsyncIterator[AIOKafkaAdminClient]:
    client = AIOKafkaAdminClient(bootstrap_servers=scene.bootstrap)
    await client.start()
    try:
        yield client
    finally:
        await client.close()


async def admin_create(scene: Scene) -> Said:
    made, gone = f"{scene.topic}-made", f"{scene.topic}-gone"
    wanted = [NewTopic(made, 2, 1, topic_configs={"retention.ms": "3600000"}), NewTopic(gone, 1, 1)]
    async with admin(scene) as client:
        await client.create_topics(wanted)
        await client.create_partitions({made: NewPartitions(3)})
        await client.delete_topics([gone])
    return None


async def admin_describe(scene: Scene) -> Said:
    async with admin(scene) as client:
        (shown,) = await client.describe_topics([scene.topic])
        expect_equal(len(shown["partitions"]), 2, "partitions")
        assert scene.topic in await client.list_topics()
        cluster = await client.describe_cluster()
    assert cluster["brokers"]
    return {"cluster": cluster["cluster_id"]}


async def admin_configs(scene: Scene) -> Said:
    async with admin(scene) as client:
        wanted = ConfigResource(ConfigResourceType.TOPIC, scene.topic, configs={"retention.ms": "1234567"})
        (changed,) = await client.alter_configs([wanted])
        expect_equal(changed.resources[0][0], 0, "the error code")
        entries: dict[str, str] = {}
        while entries.get("retention.ms") != "1234567":  # any broker may be asked, and hears of it a moment later
            (shown,) = await client.describe_configs([ConfigResource(ConfigResourceType.TOPIC, scene.topic)])
            entries = {entry[0]: entry[1] for entry in shown.resources[0][4]}
    return None


async def admin_delete_records(scene: Scene) -> Said:
    async with admin(scene) as client:
        await client.delete_records({TopicPartition(scene.topic, 0): RecordsToDelete(4)})
    return None


async def admin_groups(scene: Scene) -> Said:
    async with admin(scene) as client:
        assert scene.topic in {name for name, _ in await client.list_consumer_groups()}
        (shown,) = await client.describe_consumer_groups([scene.topic])
    expect_equal(shown.groups[0][2], "Empty", "the group's state")
    return None


async def admin_offsets(scene: Scene) -> Said:
    async with admin(scene) as client:
        shown = await client.list_consumer_group_offsets(scene.topic)
    expect_equal(shown[TopicPartition(scene.topic, 0)].offset, 7, "the committed offset")
    return None
