"""Commands on the cluster itself: its first records, blocks of producer ids."""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID

from broker_engine.metadata.brokers import registered
from broker_engine.metadata.decision import Decision
from broker_engine.metadata.image import MetadataImage
from broker_engine.metadata.records import (
    FeatureLevelRecord,
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


def allocate_producer_ids(image: MetadataImage, *, broker_id: int, broker_epoch: int) -> Decision[ProducerIdBlock]:
    """A block of ids that nobody else ever gets. Raises STALE_BROKER_EPOCH for a broker's former life."""
    registered(image, broker_id, broker_epoch)
    first = image.next_producer_id
    record = ProducerIdsRecord(
        broker_id=broker_id, broker_epoch=broker_epoch, next_producer_id=first + PRODUCER_ID_BLOCK_SIZE
    )
    return Decision((record,), (ProducerIdBlock(first, PRODUCER_ID_BLOCK_SIZE),))
