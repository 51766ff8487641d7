"""One segment: a `.log` file of batches with two sparse indexes. A log's last one is active, the rest are sealed."""

from __future__ import annotations

import logging
import struct
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from broker_engine.log.config import LogConfig
from broker_engine.log.damage import Hole
from broker_engine.log.file_seam import FileHandle, Files
from broker_engine.log.index import OFFSET_ENTRY, TIME_ENTRY, GrowingIndex, Index, StoredIndex
from broker_engine.log.plain_run import RunState
from broker_engine.log.scan import ScannedBatch, find_batch, scan_batches
from broker_engine.log.txn_index import TransactionIndex
from broker_engine.records.header import LOG_OVERHEAD_BYTES, NO_TIMESTAMP, BatchHeader

LOG_SUFFIX = ".log"
INDEX_SUFFIX = ".index"
TIME_INDEX_SUFFIX = ".timeindex"
TXN_INDEX_SUFFIX = ".txnindex"
SNAPSHOT_SUFFIX = ".snapshot"
SEGMENT_SUFFIXES = (LOG_SUFFIX, INDEX_SUFFIX, TIME_INDEX_SUFFIX, TXN_INDEX_SUFFIX, SNAPSHOT_SUFFIX)
DELETED_SUFFIX = ".deleted"
RELATIVE_OFFSET_MAX = (1 << 31) - 1

_BORDERS_MAX = 8

log = logging.getLogger(__name__)


def segment_path(directory: str, base_offset: int, suffix: str) -> str:
    return f"{directory}/{base_offset:020d}{suffix}"


class MaxTimestamp(NamedTuple):
    """The highest batch timestamp so far, and the last offset of the batch that has it."""

    timestamp: int = NO_TIMESTAMP
    offset: int = -1


class Segment:
    def __init__(self, files: Files, directory: str, base_offset: int, handle: FileHandle, *, created_ms: int) -> None:
        self.base_offset = base_offset
        self.handle = handle
        self.end_offset = base_offset
        self.created_ms = created_ms
        self.jitter_share = 0.0
        """How much of the topic's jitter is its own: at least 0, below 1."""
        self.max_timestamp = MaxTimestamp()
        self.first_timestamp: int | None = None
        self.newest_ms = NO_TIMESTAMP
        """The age that retention sees: the highest timestamp, none counted as later than its append."""
        self.offset_index: Index = GrowingIndex(OFFSET_ENTRY)
        self.time_index: Index = GrowingIndex(TIME_ENTRY)
        self.txn_index = TransactionIndex(files, segment_path(directory, base_offset, TXN_INDEX_SUFFIX))
        self.holes: list[Hole] = []
        """Damaged places, in order."""
        self._bytes_since_entry = 0
        self._borders: dict[int, int] = {}
        """Offsets up to which readers have read, and where those are in the file: they will go on there."""
        self._files = files
        self._directory = directory

    @property
    def size_bytes(self) -> int:
        return self.handle.size_bytes

    @property
    def first_timestamp_ms(self) -> int | None:
        """Of the first batch; read from the file where a restart did not need it."""
        if self.first_timestamp is None:
            first = next(scan_batches(self.handle, 0), None)
            self.first_timestamp = first.header.max_timestamp if first else None
        return self.first_timestamp

    def path(self, suffix: str) -> str:
        return segment_path(self._directory, self.base_offset, suffix)

    def has_room_for(self, header: BatchHeader) -> bool:
        """Could the offsets of this batch come next? No CRC covers them."""
        return self.end_offset <= header.base_offset and header.last_offset - self.base_offset <= RELATIVE_OFFSET_MAX

    def should_roll(self, header: BatchHeader, config: LogConfig, now_ms: int, pending_bytes: int = 0) -> bool:
        """Must this batch, with its final offsets, go into a new segment? `pending_bytes` will be written before it."""
        size_bytes = self.size_bytes + pending_bytes
        if size_bytes == 0:
            return False
        return (
            size_bytes + header.size_bytes > config.segment_bytes
            or self._age_ms_at(header.max_timestamp, now_ms) > config.roll_ms(self.jitter_share)
            or self._is_an_index_full(config.segment_index_bytes)
            or header.last_offset - self.base_offset > RELATIVE_OFFSET_MAX
        )

    def should_roll_before_run(
        self, headers: Sequence[BatchHeader], end_offset: int, size_bytes: int, config: LogConfig, now_ms: int
    ) -> bool:
        """Does one of these batches, which end at `end_offset` and have `size_bytes`, belong into a new segment?"""
        timestamps = [header.max_timestamp for header in headers]
        roll_ms = config.roll_ms(self.jitter_share)
        return (
            self.size_bytes + size_bytes > config.segment_bytes
            or self._age_ms_at(max(timestamps), now_ms) > roll_ms
            or self._age_ms_at(min(timestamps), now_ms) > roll_ms  # it may have no time: then the clock's counts
            or self._is_an_index_full(config.segment_index_bytes, new_entry_count=len(headers))
            or end_offset - 1 - self.base_offset > RELATIVE_OFFSET_MAX
        )

    def _is_an_index_full(self, index_bytes_max: int, new_entry_count: int = 1) -> bool:
        """The time index keeps room for the entry that sealing adds."""
        offset_bytes = (self.offset_index.entry_count + new_entry_count) * OFFSET_ENTRY.size
        time_bytes = (self.time_index.entry_count + new_entry_count + 1) * TIME_ENTRY.size
        return offset_bytes > index_bytes_max or time_bytes > index_bytes_max

    def _age_ms_at(self, timestamp: int, now_ms: int) -> int:
        """By the records' own time where they have one, as Kafka counts it; else by the clock."""
        first = self.first_timestamp
        if first is None or first < 0 or timestamp < 0:
            return now_ms - self.created_ms
        return timestamp - first

    def observe(self, position: int, header: BatchHeader, *, append_ms: int, index_interval_bytes: int) -> None:
        """Take note of a batch that now lies at `position`: the same for an append and for a recovery scan."""
        self._observe(position, header, header.base_offset, append_ms, index_interval_bytes)

    def observe_appended(
        self, position: int, headers: Sequence[BatchHeader], *, append_ms: int, index_interval_bytes: int
    ) -> None:
        """Take note of batches that were just appended, one behind the other. Headers are as they were sent."""
        for header in headers:
            self._observe(position, header, self.end_offset, append_ms, index_interval_bytes)
            position += header.batch_length + LOG_OVERHEAD_BYTES

    def _observe(
        self, position: int, header: BatchHeader, base_offset: int, append_ms: int, index_interval_bytes: int
    ) -> None:
        timestamp, last_offset = header.max_timestamp, base_offset + header.last_offset_delta
        if self.first_timestamp is None:
            self.first_timestamp = timestamp
        if timestamp > self.max_timestamp[0]:
            self.max_timestamp = MaxTimestamp(timestamp, last_offset)
        age_stamp = append_ms if timestamp < 0 or timestamp > append_ms else timestamp
        self.newest_ms = max(self.newest_ms, age_stamp)
        if self._bytes_since_entry > index_interval_bytes:
            self._add_index_entries(position, last_offset)
        self._bytes_since_entry += header.batch_length + LOG_OVERHEAD_BYTES
        self.end_offset = last_offset + 1

    def observe_run(self, state: RunState, size_bytes: int) -> None:
        """At recovery: take note of ordinary batches (plain_run) none of which gets an index entry."""
        self.max_timestamp = MaxTimestamp(state.max_timestamp, state.max_timestamp_offset)
        self.newest_ms = max(self.newest_ms, min(state.max_timestamp, self.created_ms))
        self._bytes_since_entry += size_bytes
        self.end_offset = state.end_offset

    def bytes_to_entry(self, index_interval_bytes: int) -> int:
        """How much more fits before a batch gets an index entry; negative if the next one does."""
        return index_interval_bytes - self._bytes_since_entry

    def _add_index_entries(self, position: int, last_offset: int) -> None:
        assert isinstance(self.offset_index, GrowingIndex), "only the active segment grows"
        self.offset_index.append(last_offset - self.base_offset, position)
        self.add_last_time_entry()
        self._bytes_since_entry = 0

    def add_last_time_entry(self) -> None:
        """The time index ends with the highest timestamp there is."""
        timestamp, offset = self.max_timestamp
        if timestamp != NO_TIMESTAMP and isinstance(self.time_index, GrowingIndex):
            self.time_index.append(timestamp, offset - self.base_offset)

    def seal(self, *, is_durable: bool = False) -> None:
        """No more appends: write the indexes to their files. Failing that they stay in memory; they are caches.

        Nothing in their format tells half a file from a whole one, and below the recovery point they are trusted: they
        must be on the disk before it passes the segment. If not `is_durable` already here, then by a flush.
        """
        self.add_last_time_entry()
        try:
            self.offset_index = self._store(self.offset_index, OFFSET_ENTRY, INDEX_SUFFIX)
            self.time_index = self._store(self.time_index, TIME_ENTRY, TIME_INDEX_SUFFIX)
            for handle in self._index_handles() if is_durable else ():
                handle.sync()
        except OSError as error:
            log.warning("indexes of a sealed segment stay in memory", extra={"reason": error.strerror})

    def _store(self, index: Index, entry: struct.Struct, suffix: str) -> Index:
        if not isinstance(index, GrowingIndex):
            return index
        self._files.write_atomic(self.path(suffix), index.pack(), is_durable=False)
        return StoredIndex(entry, self._files, self.path(suffix))

    def locate(self, offset: int) -> ScannedBatch | None:
        """The first batch that ends at or above `offset`; None if there is none in this segment."""
        if self.holes:
            return next((batch for batch in self.batches_near(offset) if batch.header.last_offset >= offset), None)
        position = self._borders.get(offset)
        return find_batch(self.handle, self._indexed_position(offset) if position is None else position, offset)

    def note_read_to_end(self) -> None:
        """Followers and readers at the tail ask for what comes next: it will be found without a search."""
        if self.end_offset not in self._borders:
            if len(self._borders) >= _BORDERS_MAX:
                del self._borders[next(iter(self._borders))]
            self._borders[self.end_offset] = self.size_bytes

    def hole_at(self, offset: int) -> Hole | None:
        return next((hole for hole in self.holes if hole.start_offset <= offset < hole.end_offset), None)

    @property
    def ends_in_hole(self) -> bool:
        """It is damaged to its end, or that is missing."""
        return bool(self.holes) and self.holes[-1].end_position == self.size_bytes

    def readable_end(self, position: int) -> int:
        """How far one can read from a sound batch without meeting damage."""
        return min((hole.position for hole in self.holes if hole.position > position), default=self.size_bytes)

    def read_batch(self, batch: ScannedBatch) -> bytes:
        return self.handle.pread(batch.header.size_bytes, batch.position)

    def batches_near(self, offset: int) -> Iterator[ScannedBatch]:
        """Batches in order, from the last indexed one that does not begin after `offset`."""
        position = self._indexed_position(offset)
        for hole in self.holes:
            yield from scan_batches(self.handle, position, hole.position)
            position = max(position, hole.end_position)
        yield from scan_batches(self.handle, position)

    def position_before(self, offset: int) -> int:
        """Of a batch with all whole ones between it and the indexed one where a search for `offset` would begin."""
        entry = self.offset_index.floor(offset - self.base_offset)
        position = 0 if entry is None else self._indexed_position(self.base_offset + entry[0] - 1)
        return max([position, *(hole.end_position for hole in self.holes if hole.end_offset <= offset)])

    def _indexed_position(self, offset: int) -> int:
        entry = self.offset_index.floor(offset - self.base_offset)
        return entry[1] if entry else 0

    def batches_near_timestamp(self, timestamp_ms: int) -> Iterator[ScannedBatch]:
        """Batches in order, from one before which every batch is older than `timestamp_ms`."""
        entry = self.time_index.floor(timestamp_ms - 1)
        return self.batches_near(self.base_offset + entry[1] if entry else self.base_offset)

    def synced_handles(self) -> list[FileHandle]:
        """What a flush of this segment brings to the disk."""
        txn_handle = self.txn_index.handle
        return [self.handle, *([] if txn_handle is None else [txn_handle]), *self._index_handles()]

    def _index_handles(self) -> list[FileHandle]:
        return [index.handle for index in (self.offset_index, self.time_index) if isinstance(index, StoredIndex)]

    def close(self) -> None:
        self.handle.close()
        self.txn_index.close()
        for index in (self.offset_index, self.time_index):
            if isinstance(index, StoredIndex):
                index.close()
