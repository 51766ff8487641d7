"""Walking over the batches of a segment file, by header or with every CRC verified."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import NamedTuple

from broker_engine.log.file_seam import Readable
from broker_engine.records.header import (
    BATCH_LENGTH_MIN,
    HEADER_SIZE_BYTES,
    LOG_OVERHEAD_BYTES,
    MAGIC,
    BatchHeader,
    parse_header,
    verify_crc,
)

_HEADER_WINDOW_BYTES = 4 * 1024
_VERIFY_WINDOW_BYTES = 1024 * 1024
_PLACE = struct.Struct(">qi11xi")
"""baseOffset, batchLength, lastOffsetDelta: where a batch is."""


class ScannedBatch(NamedTuple):
    position: int
    header: BatchHeader

    @property
    def end_position(self) -> int:
        return self.position + self.header.size_bytes


def scan_batches(
    handle: Readable, start: int, end: int | None = None, *, verify: bool = False
) -> Iterator[ScannedBatch]:
    """Batches from `start`, which must be a batch border. Stops where there is no whole, sane batch before `end`.

    With `verify` a batch counts as sane only if its CRC agrees, and whole batches are read instead of headers.
    """
    end = handle.size_bytes if end is None else end
    window_bytes = _VERIFY_WINDOW_BYTES if verify else _HEADER_WINDOW_BYTES
    window, window_start, position = memoryview(b""), start, start
    while position + HEADER_SIZE_BYTES <= end:
        if position + HEADER_SIZE_BYTES > window_start + len(window):
            window, window_start = memoryview(handle.pread(window_bytes, position)), position
        header = _sane_header(window[position - window_start :], end - position)
        if header is None:
            return
        if verify:
            if position + header.size_bytes > window_start + len(window):
                size_bytes = max(window_bytes, header.size_bytes)
                window, window_start = memoryview(handle.pread(size_bytes, position)), position
            if not verify_crc(window[position - window_start :], header):
                return
        yield ScannedBatch(position, header)
        position += header.size_bytes


def find_batch(handle: Readable, start: int, offset: int) -> ScannedBatch | None:
    """The first batch at or behind `start` that ends at or above `offset`.

    The same as taking it from scan_batches, but every fetch does this: three fields per batch passed, not thirteen.
    """
    end, position = handle.size_bytes, start
    while position + HEADER_SIZE_BYTES <= end:
        window = handle.pread(_HEADER_WINDOW_BYTES, position)
        at, at_max = 0, len(window) - HEADER_SIZE_BYTES
        if at_max < 0:
            return None  # the file is shorter than it was
        while at <= at_max:
            base_offset, batch_length, last_offset_delta = _PLACE.unpack_from(window, at)
            if base_offset + last_offset_delta >= offset:
                return next(scan_batches(handle, position + at, end), None)
            if batch_length < BATCH_LENGTH_MIN:
                return None
            at += LOG_OVERHEAD_BYTES + batch_length
        position += at
    return None


def _sane_header(view: memoryview, room_bytes: int) -> BatchHeader | None:
    if len(view) < HEADER_SIZE_BYTES:
        return None
    header = parse_header(view)
    is_sane = (
        header.magic == MAGIC
        and header.batch_length >= BATCH_LENGTH_MIN
        and header.size_bytes <= room_bytes
        and header.last_offset_delta >= 0
    )
    return header if is_sane else None
