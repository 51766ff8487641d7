"""Carrying out a compaction plan: collect keys, then clean group after group, in a thread and at a given pace.

    job = log.compaction_job(...)                      # on the loop; None: not due
    job.prepare(pace)                                  # T
    for cleaning in job.cleanings():                   # until job.has_failed
        cleaning.clean(pace)                           # T: reads, writes, syncs
        deleted = log.swap_in(cleaning)                # readers have the new segment from here on
        cleaning.finish()                              # T
        log.settle(cleaning); ... remove `deleted` in a thread, as after retention
    log.end_compaction(job)                            # always; raises where the disk failed

A batch that does not decode or verify ends the job: the log is named uncleanable and left alone until it is reopened.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from broker_engine.log import swap
from broker_engine.log.compaction_filter import BatchFilter, LatestOffsets
from broker_engine.log.compaction_plan import CompactionPlan
from broker_engine.log.config import LogConfig
from broker_engine.log.file_seam import FileHandle, Files
from broker_engine.log.index import OFFSET_ENTRY, TIME_ENTRY, GrowingIndex, StoredIndex
from broker_engine.log.scan import scan_batches
from broker_engine.log.segment import (
    INDEX_SUFFIX,
    LOG_SUFFIX,
    TIME_INDEX_SUFFIX,
    TXN_INDEX_SUFFIX,
    Segment,
)
from broker_engine.log.txn_index import AbortedTransaction, TransactionIndex, pack_entries, read_entries
from broker_engine.log.verify import no_pause
from broker_engine.records.compression import CorruptBatch, TooLarge
from broker_engine.records.header import BatchHeader, parse_header
from broker_engine.records.rewrite import empty_batch, without_producer

KEYS_MAX_DEFAULT = 500_000
"""Distinct keys that one run can tell apart: about 100 MB. The rest of the log waits for the next run."""

Pace = Callable[[int], None]
"""Is told the bytes of each batch that was read or written, and may sleep."""


class SwapJob:
    """Segments are to be replaced. Nothing of it raises in the thread: look at `problem` and `error`."""

    def __init__(self, files: Files, directory: str, config: LogConfig) -> None:
        self.files = files
        self.directory = directory
        self.config = config
        self.problem = ""
        """Why it cannot be done; empty if it can."""
        self.error: OSError | None = None
        self.read_bytes = self.written_bytes = 0

    @property
    def has_failed(self) -> bool:
        return bool(self.problem) or self.error is not None


class CompactionJob(SwapJob):
    """One at a time per log."""

    def __init__(
        self,
        files: Files,
        directory: str,
        config: LogConfig,
        *,
        plan: CompactionPlan,
        groups: Sequence[Sequence[Segment]],
        txn_indexes: Sequence[FileHandle],
        latest: LatestOffsets,
        batch_filter: BatchFilter,
    ) -> None:
        super().__init__(files, directory, config)
        self.plan = plan
        self.latest = latest
        self.batch_filter = batch_filter
        self._groups = groups
        self._txn_indexes = txn_indexes
        self._pinned = [*txn_indexes, *(segment.handle for group in groups for segment in group)]
        for handle in self._pinned:
            handle.pin()

    def prepare(self, pace: Pace = no_pause) -> None:
        """Collect the keys of the dirty part, or of as much of it as there is room for."""
        with _kept_for_the_loop(self):
            for txn_index in self._txn_indexes:
                self.batch_filter.note_aborted(read_entries(txn_index))
            for segment in (segment for group in self._groups for segment in group):
                if segment.end_offset > self.plan.first_dirty_offset and not self._collect(segment, pace):
                    return
            self.latest.end_offset = self.plan.end_offset

    def _collect(self, segment: Segment, pace: Pace) -> bool:
        """False if there is no room for more keys."""
        for batch, header in read_batches(segment):
            if header.last_offset >= self.plan.first_dirty_offset:
                if self.latest.is_full:
                    return False
                self.batch_filter.note_keys(batch, header)
            self.read_bytes += len(batch)
            pace(len(batch))
        return True

    def cleanings(self) -> Iterator[Cleaning]:
        for group in self._groups:
            if self.has_failed or group[0].base_offset >= self.latest.end_offset:
                return
            yield Cleaning(self, list(group))

    def release(self) -> None:
        for handle in self._pinned:
            handle.unpin()
        self._pinned = []


class Swapping:
    """Some neighbouring segments on their way to become one."""

    is_of_damaged_log = False

    def __init__(self, job: SwapJob, sources: list[Segment]) -> None:
        self.job = job
        self.sources = sources
        self.segment: Segment | None = None
        """What takes their place; None if nothing would change, or after a failure."""
        self._handles: list[FileHandle] = []
        """Of what is written. It changes its name twice: no descriptor must be closed in between."""
        self._kept_markers: set[int] = set()

    @property
    def base_offset(self) -> int:
        return self.sources[0].base_offset

    def clean(self, pace: Pace = no_pause) -> None:
        """Write the new segment and make it durable. Nothing that readers see has changed when this returns."""
        try:
            with _kept_for_the_loop(self.job):
                self.segment = self._write(pace)
        finally:
            if self.segment is None:
                self.discard()

    def _write(self, pace: Pace) -> Segment | None:
        """None if it would be what is there already."""
        segment = self._create()
        is_changed = len(self.sources) > 1
        for source in self.sources:
            is_changed |= self._copy(source, segment, pace)
        if not is_changed:
            return None
        segment.end_offset = self.sources[-1].end_offset
        segment.add_last_time_entry()
        self._store_indexes(segment)
        segment.handle.sync()
        swap.commit_cleaned(self.job.files, self.job.directory, self.base_offset)
        return segment

    def _create(self) -> Segment:
        files, source = self.job.files, self.sources[-1]
        path = self.sources[0].path(LOG_SUFFIX) + swap.CLEANED_SUFFIX
        if files.exists(path):
            files.unlink(path)
        handle = self._hold(files.open(path, create=True))
        return Segment(files, self.job.directory, self.base_offset, handle, created_ms=source.created_ms)

    def _hold(self, handle: FileHandle) -> FileHandle:
        handle.pin()
        self._handles.append(handle)
        return handle

    def _copy(self, source: Segment, target: Segment, pace: Pace) -> bool:
        """True if anything of it was changed or left out."""
        raise NotImplementedError

    def _append(self, target: Segment, batch: bytes) -> None:
        header, position = parse_header(batch), target.size_bytes
        if not target.end_offset <= header.base_offset < header.next_offset <= self.sources[-1].end_offset:
            raise CorruptBatch(f"the batch at offset {header.base_offset} is out of order")
        if target.handle.append([batch]) != len(batch):
            raise OSError(0, "the write was cut short: the disk is full, or failing")
        interval_bytes = self.job.config.index_interval_bytes
        target.observe(position, header, append_ms=target.created_ms, index_interval_bytes=interval_bytes)
        if header.is_control and header.record_count:
            self._kept_markers.add(header.base_offset)
        self.job.written_bytes += len(batch)

    def _store_indexes(self, segment: Segment) -> None:
        assert isinstance(segment.offset_index, GrowingIndex)
        assert isinstance(segment.time_index, GrowingIndex)
        kept = self._aborted_in(segment)
        self._write_durably(segment.path(INDEX_SUFFIX), segment.offset_index.pack())
        self._write_durably(segment.path(TIME_INDEX_SUFFIX), segment.time_index.pack())
        if kept:
            path = segment.path(TXN_INDEX_SUFFIX)
            handle = self._hold(self.job.files.open(self._write_durably(path, pack_entries(kept))))
            segment.txn_index = TransactionIndex(self.job.files, path, handle)  # asked from `swap_in` on

    def _aborted_in(self, target: Segment) -> list[AbortedTransaction]:
        aborted = [entry for source in self.sources for entry in source.txn_index.entries()]
        return [entry for entry in aborted if entry.last_offset in self._kept_markers]

    def _write_durably(self, path: str, data: bytes) -> str:
        """The name that it has until it is swapped in."""
        self.job.files.write_atomic(path + swap.CLEANED_SUFFIX, data, is_durable=True)
        return path + swap.CLEANED_SUFFIX

    def finish(self) -> None:
        """After `swap_in`: give the new files their names."""
        with _kept_for_the_loop(self.job):
            swap.finish_swap(self.job.files, self.job.directory, self.base_offset)

    def settle(self) -> None:
        """After `finish`, on the loop: use the files under their names."""
        segment, files = self.segment, self.job.files
        assert segment is not None
        segment.handle = files.open(segment.path(LOG_SUFFIX))
        segment.offset_index = StoredIndex(OFFSET_ENTRY, files, segment.path(INDEX_SUFFIX))
        segment.time_index = StoredIndex(TIME_ENTRY, files, segment.path(TIME_INDEX_SUFFIX))
        segment.txn_index = TransactionIndex(files, segment.path(TXN_INDEX_SUFFIX))
        self.let_go()

    def discard(self) -> None:
        """Remove what was written. For a thread."""
        self.segment = None
        self.let_go()
        with _kept_for_the_loop(self.job):
            swap.discard(self.job.files, self.job.directory, self.base_offset)

    def let_go(self) -> None:
        """Of the handles that were written with."""
        for handle in self._handles:
            handle.unpin()
            handle.close()
        self._handles = []


class Cleaning(Swapping):
    """Without what compaction takes out."""

    def __init__(self, job: CompactionJob, sources: list[Segment]) -> None:
        super().__init__(job, sources)
        self._filter = job.batch_filter

    def _copy(self, source: Segment, target: Segment, pace: Pace) -> bool:
        is_changed = False
        for batch, header in read_batches(source):
            kept = self._filter.apply(batch, header)
            if kept is None and header.next_offset == self.sources[-1].end_offset:
                kept = _end_mark(batch, header)
            is_changed |= kept is not batch
            if kept is not None:
                self._append(target, kept)
            pace(len(batch))
        return is_changed


def _end_mark(batch: bytes, header: BatchHeader) -> bytes:
    """Nothing of the last batch stays but its place: else recovery could not tell a cleaned end from a lost one."""
    return empty_batch(without_producer(header)) if header.record_count else batch


@contextmanager
def _kept_for_the_loop(job: SwapJob) -> Iterator[None]:
    """What goes wrong in a thread: the job has a place for it."""
    try:
        yield
    except OSError as error:
        job.error = job.error or error
    except (CorruptBatch, TooLarge) as error:
        job.problem = job.problem or error.message


def read_batches(segment: Segment) -> Iterator[tuple[bytes, BatchHeader]]:
    """Every batch, its CRC verified. CorruptBatch names the place where one does not verify, or is out of order."""
    position, offset = 0, segment.base_offset
    for batch in scan_batches(segment.handle, 0, verify=True):
        if not offset <= batch.header.base_offset < batch.header.next_offset <= segment.end_offset:
            break
        yield segment.read_batch(batch), batch.header
        position, offset = batch.end_position, batch.header.next_offset
    if position != segment.size_bytes:
        raise CorruptBatch(f"the segment at offset {segment.base_offset} is damaged at byte {position}")
