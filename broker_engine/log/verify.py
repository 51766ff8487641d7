"""Verifying a sealed segment while the log serves: bits rot after the recovery scan too.

No CRC covers a batch's offset and its leader epoch: those are held against their neighbours and the epochs' checkpoint.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from broker_engine.log.checkpoints import NO_EPOCH
from broker_engine.log.damage import Hole, find_next_batch
from broker_engine.log.file_seam import FileHandle
from broker_engine.log.scan import ScannedBatch, scan_batches
from broker_engine.log.segment import Segment
from broker_engine.records.header import BatchHeader

EpochOf = Callable[[int], int]
"""The leader epoch of an offset."""


class _Place(NamedTuple):
    position: int
    offset: int
    """At which those before it end."""


class _Damage(NamedTuple):
    start: _Place
    position: int
    """The search for the next sound batch begins here."""
    end_offset_min: int


def _width(header: BatchHeader) -> int:
    return header.last_offset_delta + 1


def _joined(holes: Sequence[Hole]) -> list[Hole]:
    """Those that touch are one."""
    joined: list[Hole] = []
    for hole in holes:
        if joined and joined[-1].end_position == hole.position:
            first = joined.pop()
            hole = Hole(first.start_offset, hole.end_offset, first.position, hole.end_position)  # noqa: PLW2901
        joined.append(hole)
    return joined


def no_pause(_read_bytes: int) -> None:
    """The pace of who is in a hurry."""


@dataclass(slots=True)
class VerifyJob:
    """Made on the loop, run in a thread, handed to `PartitionLog.on_verified`. `run` never raises."""

    segment: Segment
    handle: FileHandle
    """Pinned when the job was made; `release` unpins it."""
    epoch_of: EpochOf
    missing: Sequence[Hole] = ()
    """Batches that the file has lost from its end: nothing in it says so."""
    holes: list[Hole] = field(default_factory=list)
    error: OSError | None = None

    @classmethod
    def pinned(cls, segment: Segment, epoch_of: EpochOf) -> VerifyJob:
        segment.handle.pin()
        missing = [hole for hole in segment.holes if hole.position == segment.size_bytes]
        return cls(segment, segment.handle, epoch_of, missing)

    def run(self, pace: Callable[[int], None] = no_pause) -> None:
        """`pace` is told the bytes of each batch, and may sleep."""
        try:
            self.holes = self._find_holes(pace)
        except OSError as error:
            self.error = error

    def release(self) -> None:
        self.handle.unpin()

    def _find_holes(self, pace: Callable[[int], None]) -> list[Hole]:
        holes: list[Hole] = []
        start, size_bytes, end_offset = _Place(0, self.segment.base_offset), self.handle.size_bytes, 0
        while (found := self._sound_end(start, pace)) is not None:
            following, end_offset = self._following(found.position, found.end_offset_min)
            end = _Place(size_bytes, self.segment.end_offset)
            if following is not None:
                end = _Place(following.position, following.header.base_offset)
            holes.append(Hole(found.start.offset, end.offset, found.start.position, end.position))
            start = _Place(end.position, found.start.offset)
        if end_offset > self.segment.end_offset:  # too little room for what is there: something before lies too high
            return [Hole(self.segment.base_offset, self.segment.end_offset, 0, size_bytes)]
        return _joined([*holes, *self.missing])

    def _sound_end(self, start: _Place, pace: Callable[[int], None]) -> _Damage | None:
        """Where the batches from `start` on cease to be as they should; None: nowhere."""
        place, before, last = start, start, None
        position, width = start.position, 1
        for batch in scan_batches(self.handle, start.position, verify=True):
            if not self._is_next(batch.header, place.offset):
                position, width = batch.end_position - 1, _width(batch.header)
                break
            before, last = place, batch.header
            place = _Place(batch.end_position, last.next_offset)
            position = place.position
            pace(last.size_bytes)
        if position == self.handle.size_bytes:
            return None
        if last is not None and before.offset < last.base_offset:  # no CRC says that it does not lie too high itself
            return _Damage(before, position + 1, before.offset + _width(last) + width)
        return _Damage(place, position + 1, place.offset + width)

    def _following(self, position: int, offset: int) -> tuple[ScannedBatch | None, int]:
        """The first batch from `position` on that is sound, and leaves room for those that are passed over.

        And the offset where these end at least.
        """
        while (found := find_next_batch(self.handle, position - 1, 0)) is not None:
            if self._is_next(found.header, offset):
                return found, offset
            position, offset = found.end_position, offset + _width(found.header)
        return None, offset

    def _is_next(self, header: BatchHeader, offset: int) -> bool:
        return is_next(self.segment, header, offset, self.epoch_of)


def is_next(segment: Segment, header: BatchHeader, offset: int, epoch_of: EpochOf) -> bool:
    """Can this batch lie where those before it end at `offset`?"""
    is_inside = offset <= header.base_offset and header.next_offset <= segment.end_offset
    # Kafka's own epochs begin where a log does, which may be inside its first batch.
    return is_inside and epoch_of(header.base_offset) in (header.partition_leader_epoch, NO_EPOCH)
