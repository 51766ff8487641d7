"""Damage below the recovery point: bytes that were durable once and do not verify any more.

Never cut away, never served: the log keeps the file, remembers the hole, and answers KAFKA_STORAGE_ERROR to who reads
in it. The list of holes is kept in the partition's directory, since sealed segments are not verified at every start.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from broker_engine.log.file_seam import Readable
from broker_engine.log.scan import ScannedBatch, scan_batches
from broker_engine.records.header import HEADER_SIZE_BYTES, MAGIC

QUARANTINE_FILE = "quarantine-checkpoint"
_VERSION = "0"
_MAGIC_POSITION = 16
_WINDOW_BYTES = 1024 * 1024


class Hole(NamedTuple):
    """Offsets and bytes of one segment that are lost to readers. The batch at `end_position`, if any, is sound."""

    start_offset: int
    end_offset: int
    position: int
    end_position: int

    def cut_to(self, offset: int) -> Hole:
        """What is left of it in a log that is cut at `offset`. None of its bytes: nobody can tell which lie before."""
        return self if self.end_offset <= offset else Hole(self.start_offset, offset, self.position, self.position)


Holes = Mapping[int, Sequence[Hole]]
"""By the base offset of their segment."""


def format_holes(holes: Holes) -> bytes:
    rows = [" ".join(map(str, (base, *hole))) for base, of_segment in holes.items() for hole in of_segment]
    return ("\n".join([_VERSION, str(len(rows)), *rows]) + "\n").encode()


def parse_holes(data: bytes) -> dict[int, list[Hole]]:
    """Empty where it cannot be read: what is damaged will be found again."""
    holes: dict[int, list[Hole]] = {}
    try:
        version, count, *rows = data.decode("ascii").rstrip("\n").split("\n")
        if version != _VERSION or int(count) != len(rows):
            return {}
        for row in rows:
            base, start_offset, end_offset, position, end_position = map(int, row.split(" "))
            holes.setdefault(base, []).append(Hole(start_offset, end_offset, position, end_position))
    except ValueError:
        return {}
    return holes


def find_next_batch(handle: Readable, start: int, offset_min: int) -> ScannedBatch | None:
    """The first batch behind `start` whose CRC agrees and that continues the log. Slow: it looks at every byte."""
    for position in _candidates(handle, start + 1):
        batch = next(scan_batches(handle, position, verify=True), None)
        if batch is not None and batch.header.base_offset >= offset_min:
            return batch
    return None


def _candidates(handle: Readable, start: int) -> Iterator[int]:
    """Positions at which the format's number stands where a batch has it."""
    magic = bytes([MAGIC])
    for window_start in range(start, handle.size_bytes - HEADER_SIZE_BYTES + 1, _WINDOW_BYTES):
        window = handle.pread(_WINDOW_BYTES, window_start + _MAGIC_POSITION)
        at = window.find(magic)
        while at >= 0:
            yield window_start + at
            at = window.find(magic, at + 1)
