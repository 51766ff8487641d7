"""A log whose segments may be replaced by cleaned ones while it serves. See compaction for the order of the steps."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from broker_engine.log.checkpoints import EpochCache
from broker_engine.log.compaction import KEYS_MAX_DEFAULT, CompactionJob, Swapping
from broker_engine.log.compaction_filter import BatchFilter, LatestOffsets
from broker_engine.log.compaction_plan import CompactionPlan, plan_compaction
from broker_engine.log.config import LogConfig
from broker_engine.log.file_seam import Files
from broker_engine.log.readable_log import ReadableLog
from broker_engine.log.removals import Removals
from broker_engine.log.results import LogState, storage_error, storage_errors
from broker_engine.log.retention import DeletedSegment
from broker_engine.log.segment import Segment
from broker_engine.records.control import LastBatch

LastBatches = Callable[[int], Mapping[int, LastBatch]]
"""By the offset up to which nothing is taken away any more."""
"""Asked only when a compaction is due: there may be many producers."""


class CompactableLog(ReadableLog):
    def __init__(
        self, files: Files, directory: str, config: LogConfig, segments: list[Segment], epochs: EpochCache
    ) -> None:
        super().__init__(directory, config, segments, epochs)
        self._files = files
        self.removals: Removals | None = None
        """Set by the owner: where files of removed segments wait. Without it none does."""
        self._unsynced: dict[Segment, None] = {}
        self.clean_end_offset = 0
        """Below it every key is unique: set by the owner from its checkpoint, raised by each compaction."""
        self.uncleanable = ""
        """Why compaction leaves this log alone; empty if it does not."""
        self._compaction: CompactionJob | None = None
        self._swap: Swapping | None = None

    def compaction_job(
        self, *, limit_offset: int, last_batches: LastBatches, now_ms: int, keys_max: int = KEYS_MAX_DEFAULT
    ) -> CompactionJob | None:
        """What is to be compacted below `limit_offset`; None if nothing is due. See compaction.py for what follows."""
        self._check_online()
        if self._compaction is not None or self.uncleanable or not self.config.is_compacting:
            return None
        if self.holes:
            self.uncleanable = "offsets are damaged on disk"
            return None
        plan = plan_compaction(
            self._segments,
            self.config,
            clean_end_offset=max(self.clean_end_offset, self.log_start_offset),
            limit_offset=limit_offset,
            now_ms=now_ms,
        )
        if plan is None:
            return None
        with storage_errors():
            self._compaction = self._compaction_of(plan, last_batches(limit_offset), now_ms, keys_max)
        return self._compaction

    def _compaction_of(
        self, plan: CompactionPlan, last_batches: Mapping[int, LastBatch], now_ms: int, keys_max: int
    ) -> CompactionJob:
        by_base = dict(zip(self._bases, self._segments, strict=True))
        latest = LatestOffsets(keys_max)
        batch_filter = BatchFilter(
            latest,
            last_batches,
            now_ms=now_ms,
            delete_retention_ms=self.config.delete_retention_ms,
            decompressed_bytes_max=self.config.decompressed_bytes_max,
        )
        groups = [[by_base[base] for base in group] for group in plan.groups]
        return CompactionJob(
            self._files,
            self.directory,
            self.config,
            plan=plan,
            groups=groups,
            txn_indexes=[handle for each in self._segments if (handle := each.txn_index.open()) is not None],
            latest=latest,
            batch_filter=batch_filter,
        )

    def swap_in(self, cleaning: Swapping) -> list[DeletedSegment] | None:
        """Readers have the cleaned segment from now on. None if there is nothing to swap: then `discard` it. Else the
        old ones, for the caller to remove; they may also wait elsewhere (`removals`).

        Until `settle` no segment is removed.
        """
        first = self._bases.index(cleaning.base_offset) if cleaning.base_offset in self._bases else 0
        places = slice(first, first + len(cleaning.sources))
        is_fit = self.state is LogState.ONLINE or (self.state is LogState.DAMAGED and cleaning.is_of_damaged_log)
        if cleaning.segment is None or not is_fit or self._segments[places] != cleaning.sources:
            return None
        self._swap = cleaning
        self._segments[places] = [cleaning.segment]
        self._bases[places] = [cleaning.base_offset]
        try:
            deleted = []
            for source in cleaning.sources:
                self._unsynced.pop(source, None)
                deleted.append(DeletedSegment.take_out(source, self._files))
            return self._let_wait(deleted)
        except OSError as error:
            self._go_offline()  # some have gone, some have not: a restart finishes it
            raise storage_error(error) from error

    def _let_wait(self, deleted: list[DeletedSegment]) -> list[DeletedSegment]:
        """What is to be removed now; the rest waits."""
        delay_ms = self.config.file_delete_delay_ms
        if self.removals is None or delay_ms == 0:
            return deleted
        self.removals.add(deleted, delay_ms)
        return []

    def settle(self, cleaning: Swapping) -> None:
        """The cleaned segment's files have their names."""
        assert cleaning is self._swap
        self._swap = None
        if self.is_closed or self.is_offline:
            cleaning.let_go()
            return
        with storage_errors():
            if cleaning.job.error is not None:
                self._go_offline()
                raise cleaning.job.error
            cleaning.settle()

    def end_compaction(self, job: CompactionJob) -> None:
        """However it went. A log that cannot be compacted is named so, and left alone."""
        assert job is self._compaction
        self._compaction = None
        job.release()
        if self.is_closed:
            return  # its files may be gone by now: no error of theirs matters
        self.uncleanable = job.problem
        if job.error is not None:
            raise storage_error(job.error) from job.error
        if not job.has_failed:
            self.clean_end_offset = job.latest.end_offset

    def _go_offline(self) -> None:
        self.is_offline = True
        self._close_segments()

    def _close_segments(self) -> None:
        for segment in self._segments:
            segment.close()
