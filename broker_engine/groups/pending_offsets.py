"""Offsets that producers' transactions would commit: kept beside the committed ones until a marker decides, pure.

What was written last to a partition's offset wins, whatever the order of the markers. A partition is unsettled, for
readers who want stable offsets, until every transaction with an offset for it has ended.
"""

from __future__ import annotations

from typing import NamedTuple

from broker_engine.groups.records import OffsetKey, OffsetValue

Place = tuple[str, str, int]
"""Group, topic, partition: physical texts."""


class PendingOffset(NamedTuple):
    number: int
    """In the order of the log."""
    key: OffsetKey
    value: OffsetValue | None
    """None: something newer was committed since."""


class PendingOffsets:
    def __init__(self) -> None:
        self._by_producer: dict[int, dict[Place, PendingOffset]] = {}
        """Bounded by what open transactions have in the log."""
        self._counts: dict[Place, int] = {}
        """How many open transactions have an offset there."""
        self._number = 0

    def __bool__(self) -> bool:
        return bool(self._by_producer)

    def add(self, producer_id: int, key: OffsetKey, value: OffsetValue) -> None:
        """A record of a transactional batch."""
        self._number += 1
        place = (key.group, key.topic, key.partition)
        offsets = self._by_producer.setdefault(producer_id, {})
        if place not in offsets:
            self._counts[place] = self._counts.get(place, 0) + 1
        offsets[place] = PendingOffset(self._number, key, value)

    def supersede(self, key: OffsetKey) -> None:
        """The offset was committed outside of transactions: what was pending is older."""
        self._supersede((key.group, key.topic, key.partition), self._number + 1)

    def drop(self, key: OffsetKey) -> None:
        """The offset was removed, with its group or alone: it does not come back with a marker."""
        place = (key.group, key.topic, key.partition)
        if self._counts.pop(place, 0):
            for offsets in self._by_producer.values():
                offsets.pop(place, None)

    def end(self, producer_id: int, *, is_commit: bool) -> list[tuple[OffsetKey, OffsetValue]]:
        """The producer's marker came: what is committed by it."""
        committed = []
        for place, offset in self._by_producer.pop(producer_id, {}).items():
            self._release(place)
            if is_commit and offset.value is not None:
                self._supersede(place, offset.number)
                committed.append((offset.key, offset.value))
        return committed

    def is_pending(self, group: str, topic: str, partition: int) -> bool:
        return (group, topic, partition) in self._counts

    def places_of(self, group: str) -> list[tuple[str, int]]:
        return [(topic, partition) for name, topic, partition in self._counts if name == group]

    def _supersede(self, place: Place, number: int) -> None:
        if place not in self._counts:
            return
        for offsets in self._by_producer.values():
            offset = offsets.get(place)
            if offset is not None and offset.number < number:
                offsets[place] = offset._replace(value=None)

    def _release(self, place: Place) -> None:
        count = self._counts[place] - 1
        if count:
            self._counts[place] = count
        else:
            del self._counts[place]
