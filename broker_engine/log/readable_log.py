"""What one can ask a log without changing it: stored bytes, offsets by time, epochs, aborted transactions.

All calls on the log's one owner, but for those whose docstring names a thread.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator

from broker_engine.errors import BrokerError, ErrorCode
from broker_engine.log import timestamps
from broker_engine.log.checkpoints import EpochCache
from broker_engine.log.config import LogConfig
from broker_engine.log.damage import Hole
from broker_engine.log.doubts import hole_on_the_way, is_way_sound
from broker_engine.log.file_seam import FileRange
from broker_engine.log.results import LogRead, LogState, storage_error, storage_errors
from broker_engine.log.scan import ScannedBatch
from broker_engine.log.segment import Segment
from broker_engine.log.timestamps import TimestampOffset
from broker_engine.log.txn_index import AbortedTransaction, find_aborted
from broker_engine.records.control import TxnMarker, read_marker
from broker_engine.records.header import BatchHeader


class ReadableLog:
    def __init__(self, directory: str, config: LogConfig, segments: list[Segment], epochs: EpochCache) -> None:
        self.config = config
        self.directory = directory
        self.log_start_offset = segments[0].base_offset
        self.is_offline = False
        """A disk error left the files in an unknown state."""
        self.is_closed = False
        self.on_doubted: Callable[[int], None] = lambda offset: None
        """Told where a reader met batches that do not verify: the segment should be looked at."""
        self._segments = segments
        self._bases = [segment.base_offset for segment in segments]
        self._epochs = epochs

    @property
    def log_end_offset(self) -> int:
        return self._segments[-1].end_offset

    @property
    def state(self) -> LogState:
        if self.is_closed or self.is_offline:
            return LogState.CLOSED if self.is_closed else LogState.OFFLINE
        return LogState.DAMAGED if self.holes else LogState.ONLINE

    @property
    def holes(self) -> list[Hole]:
        """Offsets that were durable once and can no longer be read: KAFKA_STORAGE_ERROR to who asks for them."""
        return [hole for segment in self._segments for hole in segment.holes]

    @property
    def unread_end_offset(self) -> int:
        """Above it everything can be read; 0: everything can."""
        return max((hole.end_offset for hole in self.holes), default=0)

    @property
    def size_bytes(self) -> int:
        return sum(segment.size_bytes for segment in self._segments)

    @property
    def segment_bases(self) -> list[int]:
        """Base offsets of the segments, the active one's last."""
        return list(self._bases)

    @property
    def segment_count(self) -> int:
        return len(self._segments)

    @property
    def latest_epoch(self) -> int:
        return self._epochs.latest_epoch

    @property
    def epochs(self) -> EpochCache:
        return self._epochs

    # --- reading

    def read(self, offset: int, *, max_bytes: int, end_offset: int, at_least_one: bool) -> LogRead:
        """Stored bytes from the batch that holds `offset`, below `end_offset`, at most `max_bytes` of them.

        May end inside a batch, and at a segment's end. With `at_least_one` the first batch comes whole even if it alone
        is larger; without, the answer is empty then. The caller releases the ranges.
        """
        self._check_online()
        if not self.log_start_offset <= offset <= self.log_end_offset:
            raise BrokerError(
                ErrorCode.OFFSET_OUT_OF_RANGE,
                f"offset {offset} is outside of {self.log_start_offset}..{self.log_end_offset}",
            )
        if offset >= end_offset:
            return LogRead([], 0, offset)
        try:
            return self._read(offset, max_bytes, end_offset, at_least_one=at_least_one)
        except OSError as error:  # not the context manager: this is the hot path
            raise storage_error(error) from error

    def _read(self, offset: int, max_bytes: int, end_offset: int, *, at_least_one: bool) -> LogRead:
        for segment in self._segments_from(offset):
            first = self._first_from(segment, offset, end_offset)
            if first is None:
                continue  # compaction left nothing at or above the offset in this segment
            first_bytes = first.header.size_bytes
            if first.header.next_offset > end_offset or (first_bytes > max_bytes and not at_least_one):
                break
            available_bytes = self._end_position(segment, end_offset) - first.position
            if segment.holes:
                available_bytes = min(available_bytes, segment.readable_end(first.position) - first.position)
            size_bytes = min(max(max_bytes, first_bytes), available_bytes)
            if first.position + size_bytes == segment.size_bytes:
                segment.note_read_to_end()
            file_range = FileRange.pinned(segment.handle, first.position, size_bytes)
            return LogRead([file_range], size_bytes, first.header.base_offset)
        return LogRead([], 0, offset)

    def _first_from(self, segment: Segment, offset: int, end_offset: int) -> ScannedBatch | None:
        """The first batch that ends at or above the offset. BrokerError where there should be another."""
        if segment.holes and (hole := segment.hole_at(offset)):
            raise _damaged(hole)
        first = segment.locate(offset)
        if first is None or first.header.base_offset > offset or first.header.next_offset > end_offset:
            if segment.holes and (hole := hole_on_the_way(segment, offset, first)):
                raise _damaged(hole)
            self._check_way(segment, offset, first)
        return first

    def _end_position(self, segment: Segment, end_offset: int) -> int:
        """The border below which every batch ends before `end_offset`: readers stop there, and cuts are made there.

        BrokerError where the way to it does not verify: who trusted it would show or cut off what he must not.
        """
        if end_offset >= segment.end_offset:
            return segment.size_bytes
        found = segment.locate(end_offset)
        if (found is None or found.header.base_offset != end_offset) and not segment.hole_at(end_offset):
            self._check_way(segment, end_offset, found)
        position = segment.size_bytes if found is None else found.position
        if segment.holes:
            return min([position, *(hole.position for hole in segment.holes if hole.end_offset > end_offset)])
        return position

    def _check_way(self, segment: Segment, offset: int, found: ScannedBatch | None) -> None:
        """What was found is not what one expects: only compaction leaves gaps, and offsets of ends are borders."""
        if not is_way_sound(segment, offset, found, self._epochs.epoch_of):
            self.on_doubted(max(offset, segment.base_offset))
            raise BrokerError(ErrorCode.KAFKA_STORAGE_ERROR, f"what is stored at offset {offset} does not verify")

    def _segments_from(self, offset: int) -> list[Segment]:
        return self._segments[max(0, bisect_right(self._bases, offset) - 1) :]

    def header_at(self, offset: int) -> BatchHeader | None:
        """Of the batch that begins there; None where none does, or it cannot be read."""
        self._check_online()
        with storage_errors():
            for segment in self._segments_from(offset):
                found = None if segment.hole_at(offset) else segment.locate(offset)
                if found is not None or segment.end_offset > offset:
                    return found.header if found is not None and found.header.base_offset == offset else None
        return None

    def iter_headers(self) -> Iterator[BatchHeader]:
        """Every batch header in order. Blocks: in a thread."""
        return (header for header, _ in self.iter_batches(0))

    def iter_batches(self, start_offset: int) -> Iterator[tuple[BatchHeader, TxnMarker | None]]:
        """Every batch from the one that holds `start_offset`: with them the owner brings a snapshot up to date.

        None is told of a marker whose batch does not verify: believed, it would say who may end transactions.
        Blocks: in a thread.
        """
        for segment in self._segments_from(start_offset):
            for batch in segment.batches_near(start_offset):
                header = batch.header
                if header.last_offset >= start_offset:
                    is_marker = header.is_control and header.is_transactional
                    yield header, read_marker(segment.read_batch(batch), verify=True) if is_marker else None

    def aborted_transactions(self, start_offset: int, end_offset: int) -> list[AbortedTransaction]:
        """Those with records in [start_offset, end_offset), in the order in which they were aborted."""
        self._check_online()
        with storage_errors():
            return find_aborted(self._segments_from(start_offset), start_offset, end_offset)

    def aborted_in(self, read: LogRead, offset: int, end_offset: int) -> list[AbortedTransaction]:
        """Those with records in what was read from `offset` on, below `end_offset`; maybe some just behind it too.

        Called without an await since the read.
        """
        with storage_errors():
            has_any = bool(read.ranges) and not all(each.txn_index.is_empty for each in self._segments_from(offset))
            return self.aborted_transactions(offset, min(end_offset, self._end_bound(read))) if has_any else []

    def _end_bound(self, read: LogRead) -> int:
        """Everything that was read lies below it, by the offset index: no batch is looked at."""
        segment = self._segments_from(read.first_offset)[0]
        entry = segment.offset_index.first_at_value(read.ranges[0].position + read.size_bytes)
        return segment.end_offset if entry is None else segment.base_offset + entry[0]

    # --- looking up

    def find_by_timestamp(self, timestamp_ms: int, end_offset: int) -> TimestampOffset | None:
        """The first record below `end_offset` at or after the given time. May decompress a batch: in a thread.

        The owner may go on meanwhile; a segment that retention takes away under it answers a (retriable) storage error.
        """
        self._check_online()
        with storage_errors():
            return timestamps.first_at_or_after(
                list(self._segments),
                timestamp_ms,
                start_offset=self.log_start_offset,
                end_offset=end_offset,
                max_bytes=self.config.decompressed_bytes_max,
            )

    def first_record_from(self, offset: int, end_offset: int) -> TimestampOffset | None:
        """The first record at or after `offset` and below `end_offset`. May decompress a batch: in a thread."""
        self._check_online()
        with storage_errors():
            return timestamps.first_from(
                self._segments_from(offset), offset, end_offset=end_offset, max_bytes=self.config.decompressed_bytes_max
            )

    def max_timestamp_offset(self, end_offset: int | None = None) -> TimestampOffset | None:
        """The record with the highest timestamp below `end_offset`. May decompress a batch: in a thread."""
        self._check_online()
        with storage_errors():
            return timestamps.highest(
                list(self._segments),
                start_offset=self.log_start_offset,
                end_offset=self.log_end_offset if end_offset is None else end_offset,
                max_bytes=self.config.decompressed_bytes_max,
            )

    def end_offset_for_epoch(self, epoch: int) -> tuple[int, int]:
        """(largest epoch not above the given one, its end offset), or (-1, -1)."""
        return self._epochs.end_offset_for(epoch, self.log_end_offset)

    def epoch_of(self, offset: int) -> int:
        return self._epochs.epoch_of(offset)

    def _check_online(self) -> None:
        if self.is_offline or self.is_closed:
            reason = "closed" if self.is_closed else "offline after a disk error"
            raise BrokerError(ErrorCode.KAFKA_STORAGE_ERROR, f"the log is {reason}")


def _damaged(hole: Hole) -> BrokerError:
    return BrokerError(
        ErrorCode.KAFKA_STORAGE_ERROR, f"offsets {hole.start_offset} to {hole.end_offset - 1} are damaged on disk"
    )
