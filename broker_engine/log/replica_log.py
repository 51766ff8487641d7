"""The log of one replica: also takes batches as its leader stored them, and can begin anew elsewhere."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from broker_engine.errors import BrokerError, ErrorCode
from broker_engine.log.partition_log import PartitionLog
from broker_engine.log.results import storage_error
from broker_engine.log.retention import DeletedSegment
from broker_engine.log.segment import Segment
from broker_engine.records.header import BatchHeader

OnWritten = Callable[[Sequence[BatchHeader], int], None]
"""Batches that are in the log now, and where the first of them begins in the bytes that were given."""


class ReplicaLog(PartitionLog):
    @property
    def last_record_epoch(self) -> int:
        """Of the last batch in the log; -1 if there is none. Not `latest_epoch`: its records may have been cut off."""
        end_offset = self.log_end_offset
        return self.epoch_of(end_offset - 1) if end_offset > self.log_start_offset else -1

    @property
    def is_swapping(self) -> bool:
        """A compaction replaces segments at this moment."""
        return self._swap is not None

    @property
    def is_flushing(self) -> bool:
        return self._flush_in_flight is not None

    def append_replica(
        self, records: memoryview, headers: Sequence[BatchHeader], start: int, on_written: OnWritten
    ) -> None:
        """Write checked batches as they are, one system call for all that go into the same segment.

        `on_written` is told before the next segment begins, so that a producer snapshot tells of what is before it.
        """
        self._check_online()
        first, position, now_ms = 0, start, self._clock.now_ms()
        while first < len(headers):
            try:
                count, size_bytes = self._append_run(records, headers, first, position, now_ms)
            except OSError as error:
                raise storage_error(error) from error
            on_written(headers[first : first + count], position)
            first, position = first + count, position + size_bytes

    def _append_run(
        self, records: memoryview, headers: Sequence[BatchHeader], first: int, position: int, now_ms: int
    ) -> tuple[int, int]:
        """As many batches as go into one segment; how many, and their size."""
        self._forget_epochs_without_records()
        segment = self._segments[-1]
        if segment.should_roll(headers[first], self.config, now_ms):
            segment = self.roll()
        count, size_bytes = self._fitting(segment, headers, first, now_ms)
        for header in headers[first : first + count]:
            self._note_epoch(header.partition_leader_epoch, header.base_offset)
        file_position = segment.size_bytes
        self._write(segment, [records[position : position + size_bytes]], size_bytes)
        interval_bytes = self.config.index_interval_bytes
        for header in headers[first : first + count]:
            segment.observe(file_position, header, append_ms=now_ms, index_interval_bytes=interval_bytes)
            file_position += header.size_bytes
        self._unsynced[segment] = None
        return count, size_bytes

    def _fitting(self, segment: Segment, headers: Sequence[BatchHeader], first: int, now_ms: int) -> tuple[int, int]:
        """How many of them go into this segment, and their size."""
        run = headers[first:] if first else headers
        size_bytes = sum(header.size_bytes for header in run)
        if not segment.should_roll_before_run(run, run[-1].next_offset, size_bytes, self.config, now_ms):
            return len(run), size_bytes
        count, size_bytes = 1, headers[first].size_bytes
        for header in headers[first + 1 :]:
            if segment.should_roll(header, self.config, now_ms, pending_bytes=size_bytes):
                break
            count, size_bytes = count + 1, size_bytes + header.size_bytes
        return count, size_bytes

    def _forget_epochs_without_records(self) -> None:
        """An epoch may have been noted for a batch that a crash then took: the leader's next may be of an older one."""
        entries = self._epochs.entries
        if entries and entries[-1].start_offset >= self.log_end_offset:
            self._epochs.truncate_from_end(self.log_end_offset - 1)

    def begin_lower(self, start_offset: int) -> None:
        """An empty log is to take a batch that begins before its start: the leader's log starts inside that batch."""
        self._check_online()
        assert self.log_start_offset == self.log_end_offset > start_offset, "only an empty log can begin elsewhere"
        if self.is_flushing or self.is_swapping or self.segment_count > 1:
            raise BrokerError(ErrorCode.KAFKA_STORAGE_ERROR, "the log is empty, but not idle yet")
        try:
            DeletedSegment.take_out(self._segments[0], self._files).remove()
            self._segments[:] = [self._new_segment(start_offset)]
        except OSError as error:
            self._go_offline()  # there may be no segment at all now
            raise storage_error(error) from error
        self._bases[:] = [start_offset]
        self._epochs.truncate_from_end(start_offset - 1)
        self._unsynced, self._unsynced_dirs[self.directory] = {}, None
        self.log_start_offset = self.durable_end_offset = start_offset

    def begin_anew(self, start_offset: int) -> None:
        """Drop everything; the log is empty and starts at the given offset. Blocks until that is durable."""
        self._check_online()
        assert self._swap is None, "no truncation while a compaction swaps segments"
        assert self._flush_in_flight is None, "what is flushed is not cut"
        try:
            for segment in reversed(self._segments):  # from the end: what a crash leaves is a prefix
                DeletedSegment.take_out(segment, self._files).remove()
            self._snapshots.remove_above(-1)
            self._epochs.truncate_from_end(-1)
            self._write_epochs()
            self._segments[:] = [self._new_segment(start_offset)]
            self._files.sync_dir(self.directory)
        except OSError as error:
            self._go_offline()  # some files are gone, some are not
            raise storage_error(error) from error
        self._bases[:] = [start_offset]
        self._unsynced, self._unsynced_dirs = {}, {}
        self.clean_end_offset = 0
        self.log_start_offset = self.durable_end_offset = start_offset
