"""Verifying a sealed segment while the log serves: bits rot after the recovery scan too.

No CRC covers a batch's offset and its leader epoch: those are held against their neighbours and the epochs' checkpoint.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from broker_engine.log.damage import Hole, find_next_batch
from broker_engine.log.file_seam import FileHandle
from broker_engine.log.scan import ScannedBatch, scan_batches
from broker_engine.log.segment import Segment
from broker_engine.records.header import BatchHeader

EpochOf = Callable[[int], int]
"""The leader epoch of an offset."""


def no_pause(_read_bytes: int) -> None:
    """The pace of who is in a hurry."""


@dataclass(slots=True)
class VerifyJob:
    """Made on the loop, run in a thread, handed to `PartitionLog.on_verified`. `run` never raises."""

    segment: Segment
    handle: FileHandle
    """Pinned when the job was made; `release` unpins it."""
    epoch_of: EpochOf
    holes: list[Hole] = field(default_factory=list)
    error: OSError | None = None

    @classmethod
    def pinned(cls, segment: Segment, epoch_of: EpochOf) -> VerifyJob:
        segment.handle.pin()
        return cls(segment, segment.handle, epoch_of)

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
        position, offset, handle = 0, self.segment.base_offset, self.handle
        while position < handle.size_bytes:
            before = (position, offset)
            for batch in scan_batches(handle, position, verify=True):
                if not self._is_next(batch.header, offset):
                    if before[1] <= batch.header.base_offset < offset:
                        position, offset = before  # the one before it has an offset that is too high
                    break
                before = (position, offset)
                position, offset = batch.end_position, batch.header.next_offset
                pace(batch.header.size_bytes)
            if position == handle.size_bytes:
                break
            following = self._following(position, offset)
            if following is None:
                holes.append(Hole(offset, self.segment.end_offset, position, handle.size_bytes))
                break
            holes.append(Hole(offset, following.header.base_offset, position, following.position))
            position, offset = following.position, following.header.base_offset
        return holes

    def _following(self, position: int, offset: int) -> ScannedBatch | None:
        while (found := find_next_batch(self.handle, position, offset)) is not None:
            if self._is_next(found.header, found.header.base_offset):
                return found
            position = found.position
        return None

    def _is_next(self, header: BatchHeader, offset: int) -> bool:
        return is_next(self.segment, header, offset, self.epoch_of)


def is_next(segment: Segment, header: BatchHeader, offset: int, epoch_of: EpochOf) -> bool:
    """Can this batch lie where those before it end at `offset`?"""
    is_inside = offset <= header.base_offset and header.next_offset <= segment.end_offset
    return is_inside and epoch_of(header.base_offset) == header.partition_leader_epoch
