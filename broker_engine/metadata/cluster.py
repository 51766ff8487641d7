"""Commands on the cluster itself: its first records, brokers that come (back), blocks of producer ids."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from broker_engine.errors import BrokerError, ErrorCode
from broker_engine.metadata.decision import Decision
from broker_engine.metadata.image import MetadataImage
from broker_engine.metadata.parts import EndpointImage, PartitionImage
from broker_engine.metadata.records import (
    BrokerRegistrationRecord,
    EndpointField,
    FeatureLevelRecord,
    PartitionRecord,
    ProducerIdsRecord,
    Record,
    VoterField,
    VotersRecord,
)

METADATA_FEATURE = "highwater.metadata"
METADATA_LEVEL = 1
PRODUCER_ID_BLOCK_SIZE = 1000


@dataclass(frozen=True, slots=True)
class ProducerIdBlock:
    first: int
    count: int


def bootstrap(image: MetadataImage, *, voter_id: int, directory_id: UUID) -> Decision[None]:
    """The first records of a new cluster: its level and its one voter. Nothing where they are there already."""
    if image.voters:
        return Decision((), ())
    records: tuple[Record, ...] = (
        FeatureLevelRecord(name=METADATA_FEATURE, level=METADATA_LEVEL),
        VotersRecord(voters=[VoterField(voter_id=voter_id, directory_id=directory_id)]),
    )
    return Decision(records, ())


def register_broker(
    image: MetadataImage,
    *,
    broker_id: int,
    incarnation_id: UUID,
    endpoints: Sequence[EndpointImage],
    rack: str | None = None,
) -> Decision[None]:
    """A new life of a broker. Its epoch is the offset of the first record: `image.brokers[id].epoch` after replay.

    Everything that it led in its last life it leads again under a new leader epoch: what it had not flushed may be
    gone, and an (epoch, offset) pair must never name two different records.
    """
    current = image.brokers.get(broker_id)
    if current is not None and current.incarnation_id == incarnation_id:
        return Decision((), ())
    registration = BrokerRegistrationRecord(
        broker_id=broker_id,
        incarnation_id=incarnation_id,
        rack=rack,
        endpoints=[
            EndpointField(name=e.name, host=e.host, port=e.port, security_protocol=e.security_protocol)
            for e in endpoints
        ],
    )
    return Decision((registration, *_led_again(image, broker_id)), ())


def _led_again(image: MetadataImage, broker_id: int) -> list[PartitionRecord]:
    return [
        _next_epoch(topic.id, index, partition)
        for topic in image.topics.values()
        for index, partition in topic.partitions.items()
        if partition.leader == broker_id
    ]


def _next_epoch(topic_id: UUID, index: int, partition: PartitionImage) -> PartitionRecord:
    return PartitionRecord(
        topic_id=topic_id,
        partition=index,
        replicas=partition.replicas,
        isr=partition.isr,
        elr=partition.elr,
        leader=partition.leader,
        leader_epoch=partition.leader_epoch + 1,
        partition_epoch=partition.partition_epoch + 1,
    )


def allocate_producer_ids(image: MetadataImage, *, broker_id: int, broker_epoch: int) -> Decision[ProducerIdBlock]:
    """A block of ids that nobody else ever gets. Raises STALE_BROKER_EPOCH for a broker's former life."""
    broker = image.brokers.get(broker_id)
    if broker is None:
        raise BrokerError(ErrorCode.BROKER_ID_NOT_REGISTERED, f"Broker {broker_id} is not registered.")
    if broker.epoch != broker_epoch:
        raise BrokerError(ErrorCode.STALE_BROKER_EPOCH, f"Expected broker epoch {broker.epoch}, not {broker_epoch}.")
    first = image.next_producer_id
    record = ProducerIdsRecord(
        broker_id=broker_id, broker_epoch=broker_epoch, next_producer_id=first + PRODUCER_ID_BLOCK_SIZE
    )
    return Decision((record,), (ProducerIdBlock(first, PRODUCER_ID_BLOCK_SIZE),))
