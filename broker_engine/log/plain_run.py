"""Many ordinary batches in one go: what makes a recovery scan fast where batches are small.

An ordinary batch follows the one before it without a gap, in the same leader epoch, neither compacted nor a marker,
with a time that is neither missing nor ahead. Nearly all are. About everything else, and about each batch that gets an
index entry, SegmentRecovery asks its questions one by one. It would have come to the same answers about the batches
that are passed here: a test compares them.
"""

from __future__ import annotations

import struct
from typing import NamedTuple

from crc32c import crc32c

from broker_engine.records.header import (
    BATCH_LENGTH_MIN,
    CONTROL_BIT,
    CRC_START,
    DELETE_HORIZON_BIT,
    HEADER_SIZE_BYTES,
    LOG_OVERHEAD_BYTES,
    MAGIC,
)

UNUSUAL_BITS = CONTROL_BIT | DELETE_HORIZON_BIT
_FIELDS = struct.Struct(">qiibIhi8xq14xi")
"""The header without base timestamp and producer: nine fields take half the time of thirteen."""
assert _FIELDS.size == HEADER_SIZE_BYTES


class RunState(NamedTuple):
    """What a segment knows before a run, and after it."""

    end_offset: int
    max_timestamp: int
    max_timestamp_offset: int


class RunLimits(NamedTuple):
    leader_epoch: int
    last_offset_max: int
    timestamp_max: int
    size_bytes_max: int
    """A run ends with the batch that passes this: the next one gets an index entry."""


def pass_plain_batches(view: memoryview, at: int, state: RunState, limits: RunLimits) -> tuple[int, RunState]:
    """Where the ordinary batches that begin at `at` end, and the state behind them. CRCs are verified."""
    end_offset, max_timestamp, max_timestamp_offset = state
    epoch, last_offset_max, timestamp_max, size_bytes_max = limits
    unpack, view_bytes = _FIELDS.unpack_from, len(view)
    at_max = min(view_bytes - HEADER_SIZE_BYTES, at + size_bytes_max)
    while at <= at_max:
        base, length, batch_epoch, magic, crc, attributes, last_delta, timestamp, count = unpack(view, at)
        end = at + LOG_OVERHEAD_BYTES + length
        last_offset = base + last_delta
        if (
            base != end_offset
            or batch_epoch != epoch
            or magic != MAGIC
            or attributes & UNUSUAL_BITS
            or not 0 < count == last_delta + 1
            or last_offset > last_offset_max
            or not 0 <= timestamp <= timestamp_max
            or not BATCH_LENGTH_MIN <= length <= view_bytes - at - LOG_OVERHEAD_BYTES
            or crc32c(view[at + CRC_START : end]) != crc
        ):
            break
        if timestamp > max_timestamp:
            max_timestamp, max_timestamp_offset = timestamp, last_offset
        end_offset = last_offset + 1
        at = end
    return at, RunState(end_offset, max_timestamp, max_timestamp_offset)
