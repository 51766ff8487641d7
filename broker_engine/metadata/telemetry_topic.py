"""`__telemetry` (contracts.md section 9): partition n is broker n's own, with one replica, there.

A number below a broker's that is no broker's gets its partition at whoever came first, and nobody writes to it until
the broker of that number comes and takes it.
"""

from __future__ import annotations

from collections.abc import Callable
from uuid import UUID

from broker_engine.ids import NO_LEADER
from broker_engine.metadata.image import MetadataImage
from broker_engine.metadata.parts import PartitionImage
from broker_engine.metadata.records import RESOURCE_TOPIC, ConfigRecord, Record, TopicRecord
from broker_engine.metadata.snapshot import partition_record
from broker_engine.names import ROOT, TELEMETRY, Name

TELEMETRY_TOPIC = Name(ROOT, TELEMETRY)
TELEMETRY_CONFIGS = {
    "ack.durability": "page-cache",
    "cleanup.policy": "delete",
    "retention.ms": "3600000",
    "retention.bytes": str(64 << 20),
    "segment.bytes": str(4 << 20),
}


def made_at_home(image: MetadataImage, broker_id: int, new_id: Callable[[], UUID]) -> list[Record]:
    """What a broker that registers needs so that it has its own partition, whatever became of the disk before it."""
    topic = image.topic(TELEMETRY_TOPIC)
    if topic is None:
        topic_id = new_id()
        return [*_topic_records(topic_id), *_homes(image, topic_id, range(broker_id + 1), broker_id)]
    added = _homes(image, topic.id, range(topic.partition_count, broker_id + 1), broker_id)
    lost = [index for index, partition in topic.partitions.items() if _is_to_be_taken(index, partition, broker_id)]
    return [*added, *(partition_record(topic.id, i, _at(image, broker_id, topic.partitions[i])) for i in lost)]


def _is_to_be_taken(index: int, partition: PartitionImage, broker_id: int) -> bool:
    """Its own, where somebody else keeps it; what it keeps, where nobody could lead it any more."""
    if partition.replicas == (broker_id,):
        return not (partition.isr or partition.elr)
    return index == broker_id


def given_away(image: MetadataImage, broker_id: int) -> list[Record]:
    """The partitions of a broker that goes for good, to another one: indexes have no gaps."""
    topic = image.topic(TELEMETRY_TOPIC)
    others = sorted(
        (broker for broker in image.brokers.values() if broker.id != broker_id),
        key=lambda broker: (not broker.is_active, broker.id),
    )
    if topic is None or not others:
        return []
    return [
        partition_record(topic.id, index, _at(image, others[0].id, partition))
        for index, partition in topic.partitions.items()
        if broker_id in partition.replicas
    ]


def _topic_records(topic_id: UUID) -> list[Record]:
    tenant, name = TELEMETRY_TOPIC.tenant, TELEMETRY_TOPIC.name
    return [
        TopicRecord(tenant=tenant, name=name, topic_id=topic_id),
        *(
            ConfigRecord(tenant=tenant, resource_type=RESOURCE_TOPIC, resource_name=name, name=key, value=value)
            for key, value in TELEMETRY_CONFIGS.items()
        ),
    ]


def _homes(image: MetadataImage, topic_id: UUID, indexes: range, broker_id: int) -> list[Record]:
    homes = ((index, index if index in image.brokers else broker_id) for index in indexes)
    return [partition_record(topic_id, index, _at(image, home)) for index, home in homes]


def _at(image: MetadataImage, home: int, before: PartitionImage | None = None) -> PartitionImage:
    """On one broker, which leads it as soon as it may."""
    is_active = image.brokers[home].is_active
    return PartitionImage(
        replicas=(home,),
        isr=(home,) if is_active else (),
        elr=() if is_active else (home,),
        leader=home if is_active else NO_LEADER,
        leader_epoch=before.leader_epoch + 1 if before else 0,
        partition_epoch=before.partition_epoch + 1 if before else 0,
    )
