"""Looking up offsets by time over a log's segments (ListOffsets).

Stored batches are hostile: a batch that does not decode answers with its own first offset and highest timestamp.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from broker_engine.log.scan import ScannedBatch
from broker_engine.log.segment import Segment
from broker_engine.records.compression import CorruptBatch, TooLarge
from broker_engine.records.decode import Record, decode_records
from broker_engine.records.header import NO_TIMESTAMP

log = logging.getLogger(__name__)


class TimestampOffset(NamedTuple):
    timestamp: int
    offset: int
    leader_epoch: int


def first_at_or_after(
    segments: Sequence[Segment], timestamp_ms: int, *, start_offset: int, end_offset: int, max_bytes: int
) -> TimestampOffset | None:
    """The first record in [start_offset, end_offset) whose timestamp is at or after the given one."""
    for segment in segments:
        if segment.end_offset <= start_offset or segment.max_timestamp.timestamp < timestamp_ms:
            continue
        for batch in segment.batches_near_timestamp(timestamp_ms):
            if batch.header.next_offset > end_offset:
                return None
            if batch.header.max_timestamp < timestamp_ms or batch.header.last_offset < start_offset:
                continue
            found = _record_in(
                segment, batch, max_bytes, lambda r: r.timestamp >= timestamp_ms and r.offset >= start_offset
            )
            if found is not None:  # else its maxTimestamp lied
                return found
    return None


def first_from(segments: Iterable[Segment], offset: int, *, end_offset: int, max_bytes: int) -> TimestampOffset | None:
    """The first record at or after `offset` that a reader would get: compaction leaves gaps, markers are no records."""
    for segment in segments:
        if segment.end_offset <= offset:
            continue
        for batch in segment.batches_near(offset):
            if batch.header.next_offset > end_offset:
                return None
            if batch.header.last_offset < offset or batch.header.is_control:
                continue
            found = _record_in(segment, batch, max_bytes, lambda record: record.offset >= offset)
            if found is not None:  # else compaction took the batch's last records
                return found
    return None


def highest(
    segments: Iterable[Segment], *, start_offset: int, end_offset: int, max_bytes: int
) -> TimestampOffset | None:
    """The first record with the highest timestamp in [start_offset, end_offset)."""
    best: tuple[Segment, ScannedBatch] | None = None
    best_timestamp = NO_TIMESTAMP
    for segment in segments:
        if segment.max_timestamp.timestamp <= best_timestamp or segment.end_offset <= start_offset:
            continue
        # Cut segments (by end or start) are walked in full; whole ones from near their own maximum.
        is_whole = segment.end_offset <= end_offset and segment.base_offset >= start_offset
        near = segment.max_timestamp.offset if is_whole else segment.base_offset
        for batch in segment.batches_near(near):
            header = batch.header
            if header.next_offset > end_offset:
                break
            if header.last_offset >= start_offset and header.max_timestamp > best_timestamp:
                best, best_timestamp = (segment, batch), header.max_timestamp
    if best is None:
        return None
    return _record_in(*best, max_bytes, lambda record: record.timestamp == best_timestamp) or _as_batch(best[1])


def _record_in(
    segment: Segment, batch: ScannedBatch, max_bytes: int, matches: Callable[[Record], bool]
) -> TimestampOffset | None:
    try:
        records = decode_records(segment.handle.pread(batch.header.size_bytes, batch.position), max_bytes=max_bytes)
    except (CorruptBatch, TooLarge) as error:
        log.warning("a stored batch cannot be searched by time", extra={"reason": error.message})
        return _as_batch(batch)
    epoch = batch.header.partition_leader_epoch
    return next((TimestampOffset(r.timestamp, r.offset, epoch) for r in records if matches(r)), None)


def _as_batch(batch: ScannedBatch) -> TimestampOffset:
    header = batch.header
    return TimestampOffset(header.max_timestamp, header.base_offset, header.partition_leader_epoch)
