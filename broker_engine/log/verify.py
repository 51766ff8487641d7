"""Verifying a sealed segment while the log serves: bits rot after the recovery scan too."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from broker_engine.log.damage import Hole, find_next_batch
from broker_engine.log.file_seam import FileHandle
from broker_engine.log.scan import scan_batches
from broker_engine.log.segment import Segment


def no_pause(_read_bytes: int) -> None:
    """The pace of who is in a hurry."""


@dataclass(slots=True)
class VerifyJob:
    """Made on the loop, run in a thread, handed to `PartitionLog.on_verified`. `run` never raises."""

    segment: Segment
    handle: FileHandle
    """Pinned when the job was made; `release` unpins it."""
    holes: list[Hole] = field(default_factory=list)
    error: OSError | None = None

    @classmethod
    def pinned(cls, segment: Segment) -> VerifyJob:
        segment.handle.pin()
        return cls(segment, segment.handle)

    def run(self, pace: Callable[[int], None] = no_pause) -> None:
        """`pace` is told the bytes of each batch, and may sleep."""
        try:
            self.holes = _find_holes(self.handle, self.segment.base_offset, self.segment.end_offset, pace)
        except OSError as error:
            self.error = error

    def release(self) -> None:
        self.handle.unpin()


def _find_holes(handle: FileHandle, base_offset: int, end_offset: int, pace: Callable[[int], None]) -> list[Hole]:
    holes: list[Hole] = []
    position, offset = 0, base_offset
    while position < handle.size_bytes:
        for batch in scan_batches(handle, position, verify=True):
            if batch.header.base_offset < offset or batch.header.next_offset > end_offset:
                break
            position, offset = batch.end_position, batch.header.next_offset
            pace(batch.header.size_bytes)
        if position == handle.size_bytes:
            break
        following = find_next_batch(handle, position, offset)
        if following is None:
            holes.append(Hole(offset, end_offset, position, handle.size_bytes))
            break
        holes.append(Hole(offset, following.header.base_offset, position, following.position))
        position, offset = following.position, following.header.base_offset
    return holes
