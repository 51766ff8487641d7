"""How far replicas' logs go, as their brokers said: who has the most when somebody has to be chosen without being in
sync.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from uuid import UUID

from broker_engine.metadata.image import MetadataImage

PartitionKey = tuple[UUID, int]


@dataclass(frozen=True, slots=True, order=True)
class LogEnd:
    """In the order in which logs are compared: Raft's rule for votes."""

    last_epoch: int
    end_offset: int
    broker_epoch: int = dataclasses.field(compare=False, default=-1)
    """Of the life that said so."""


LogEnds = Mapping[PartitionKey, Mapping[int, LogEnd]]
"""By partition, then by broker."""
NO_LOG_ENDS: LogEnds = {}
_NOT_HEARD = LogEnd(-2, -1)


def of_this_life(image: MetadataImage, ends: Mapping[int, LogEnd]) -> dict[int, LogEnd]:
    """Without those of brokers that are not active, or have begun another life since."""
    kept = {}
    for member, end in ends.items():
        broker = image.brokers.get(member)
        if broker is not None and broker.is_active and broker.epoch == end.broker_epoch:
            kept[member] = end
    return kept


def longest(members: Iterable[int], ends: Mapping[int, LogEnd], *, epoch_max: int) -> int | None:
    """The first of those who have the most; who was not heard of has the least.

    No CRC covers a batch's leader epoch: one above `epoch_max`, the partition's own, is rot. Its log counts for less
    than any that can be believed.
    """

    def rank(member: int) -> tuple[bool, bool, LogEnd]:
        end = ends.get(member, _NOT_HEARD)
        return member in ends, end.last_epoch <= epoch_max, end

    return max(members, key=rank, default=None)
