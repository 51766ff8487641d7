"""`__telemetry` has a partition for every node number up to ours, each on the broker of its number."""

from __future__ import annotations

from broker_engine.clock import Randomness
from broker_engine.config import BrokerConfig
from broker_engine.metadata.controller import NewPartitions, NewTopic, create_partitions, create_topics
from broker_engine.metadata.image import MetadataImage
from broker_engine.server.metadata_driver import MetadataDriver
from broker_engine.telemetry.writer import TOPIC, TOPIC_CONFIGS


async def ensure_telemetry_topic(
    metadata: MetadataDriver, node_id: int, config: BrokerConfig, randomness: Randomness
) -> None:
    topic = metadata.image.topic(TOPIC)
    if topic is None:
        # Numbers below ours that are no broker's get a partition here, and nobody writes to it.
        homes = [(index, (_home(metadata.image, index, node_id),)) for index in range(node_id + 1)]
        new = NewTopic(TOPIC, assignments=homes, configs=TOPIC_CONFIGS)
        await metadata.commit(lambda image: create_topics(image, [new], config=config, new_id=randomness.uuid))
    elif node_id not in topic.partitions:
        added = range(topic.partition_count, node_id + 1)
        more = NewPartitions(TOPIC, node_id + 1, [(_home(metadata.image, index, node_id),) for index in added])
        await metadata.commit(lambda image: create_partitions(image, [more]))


def _home(image: MetadataImage, index: int, node_id: int) -> int:
    return index if index in image.brokers else node_id
