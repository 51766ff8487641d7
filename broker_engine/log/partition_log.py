"""One partition's log: append, flush, retain, cut. Synchronous, page cache only. Its bases read and compact.

One owner at a time. What it does: call `flush_job`, run it in a thread, hand it to `on_flushed`; run
`DeletedSegment.remove` of what retention answers in a thread as well; release every FileRange of a read. Opening blocks
(it scans and syncs): in a thread. After a disk error that leaves a file's state unknown the log is offline: every call
then answers KAFKA_STORAGE_ERROR and no file is synced again.

The recovery point and the log's start come in by `open`'s arguments: their checkpoints are the broker's, one for all.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Self
from uuid import UUID

from broker_engine.clock import Clock
from broker_engine.errors import BrokerError, ErrorCode
from broker_engine.log.checkpoints import EPOCHS_FILE, METADATA_FILE, EpochCache
from broker_engine.log.compactable_log import CompactableLog
from broker_engine.log.compaction import Swapping
from broker_engine.log.config import LogConfig
from broker_engine.log.damage import QUARANTINE_FILE, format_holes
from broker_engine.log.file_seam import Files
from broker_engine.log.flush import FlushJob, unless_full
from broker_engine.log.layout import check_topic_id, create_segment, make_partition_dir, remove_partition_dir
from broker_engine.log.mending import Mending, Patches
from broker_engine.log.recovery import LoadedLog, load_log, reload_active
from broker_engine.log.results import AppendResult, LogRead, LogState, storage_error, storage_errors
from broker_engine.log.retention import DeletedSegment, expired_count
from broker_engine.log.segment import Segment
from broker_engine.log.snapshots import SnapshotFiles, snapshot_offsets
from broker_engine.log.txn_index import AbortedScan, AbortedTransaction
from broker_engine.log.verify import VerifyJob
from broker_engine.records.builder import stamp_append_time
from broker_engine.records.header import (
    FRONT_SIZE_BYTES,
    HEADER_SIZE_BYTES,
    NO_TIMESTAMP,
    BatchHeader,
    pack_front,
    pack_header,
)

__all__ = ["AppendResult", "LogRead", "LogState", "PartitionLog"]


def no_jitter() -> float:
    return 0.0


class PartitionLog(CompactableLog):
    def __init__(
        self,
        files: Files,
        directory: str,
        config: LogConfig,
        clock: Clock,
        loaded: LoadedLog,
        *,
        jitter: Callable[[], float],
    ) -> None:
        """Not for callers: see `open`."""
        super().__init__(files, directory, config, loaded.segments, loaded.epochs)
        self.durable_end_offset = self.log_end_offset
        self.pack_producers: Callable[[], bytes | None] = lambda: None
        """Set by the owner: what producers did below the log's end, to be kept at each roll and at `close`. None: that
        is not known.
        """
        self._clock = clock
        self._jitter = jitter
        self._give_jitter(self._segments[-1])
        self._snapshots = SnapshotFiles(files, directory)
        self._unsynced_dirs: dict[str, None] = {}
        self._are_epochs_unsynced = False
        self._recovery_point_max: int | None = None
        """Set until the epochs' checkpoint is durable: above it recovery takes epochs from the batches."""
        self._flush_in_flight: FlushJob | None = None

    @classmethod
    def open(
        cls,
        files: Files,
        directory: str,
        config: LogConfig,
        clock: Clock,
        *,
        topic_id: UUID,
        recovery_point: int | None = None,
        log_start_offset: int = 0,
        jitter: Callable[[], float] = no_jitter,
    ) -> Self:
        """Make or recover the log in `directory`. Blocks; what it answers as durable was synced.

        `jitter` is a random number, at least 0 and below 1, of which each segment takes one where its topic has jitter.
        """
        with storage_errors():
            was_durable = bool(recovery_point) and files.exists(directory)
            changed_dirs = make_partition_dir(files, directory, was_durable=was_durable)
            check_topic_id(files, directory, topic_id)
            names = files.list_dir(directory)
            is_new = names == [METADATA_FILE]
            # Nobody has to look into an empty directory five times.
            fresh = LoadedLog([], EpochCache()) if is_new else None
            loaded = fresh or load_log(files, directory, names, config, recovery_point=recovery_point)
            if not loaded.segments or loaded.ends_in_hole:
                base_offset = loaded.segments[-1].end_offset if loaded.segments else log_start_offset
                loaded.segments.append(create_segment(files, directory, base_offset, clock.now_ms()))
                changed_dirs.append(directory)
            elif loaded.segments[-1].base_offset >= (recovery_point or 0):
                changed_dirs.append(directory)  # no flush since the last segment was made: its name may not be durable
            log = cls(files, directory, config, clock, loaded, jitter=jitter)
            log.log_start_offset = min(max(log.log_start_offset, log_start_offset), log.log_end_offset)
            if not is_new:
                log._remove_useless_snapshots(names)
            log._unsynced_dirs = dict.fromkeys(changed_dirs)
            if loaded.have_epochs_changed:
                log._recovery_point_max = recovery_point or 0
                log._write_epochs()
            if loaded.have_holes_changed:
                log._write_holes()
            return log

    # --- writing

    def append(
        self, batch: memoryview, header: BatchHeader, *, leader_epoch: int, log_append_time_ms: int | None
    ) -> AppendResult:
        """Give a checked batch its offsets and write it to the page cache. All of it is in the log afterwards, or none.

        `header` is what check_produced answered: it is packed again, so that nothing of the batch is copied.
        """
        self._check_online()
        payload = batch[HEADER_SIZE_BYTES : header.size_bytes]
        if log_append_time_ms is not None:
            header = stamp_append_time(header, payload, log_append_time_ms)
        base_offset = self._segments[-1].end_offset
        stored = BatchHeader(base_offset, header[1], leader_epoch, *header[3:])
        now_ms = self._clock.now_ms()
        try:
            self._note_epoch(leader_epoch, base_offset)
            segment = self._segments[-1]
            if segment.should_roll(stored, self.config, now_ms):
                segment = self.roll()
            position = segment.size_bytes
            self._write(segment, [pack_header(stored), payload], header.size_bytes)
        except OSError as error:
            raise storage_error(error) from error
        segment.observe(position, stored, append_ms=now_ms, index_interval_bytes=self.config.index_interval_bytes)
        self._unsynced[segment] = None
        return AppendResult(
            base_offset, stored.last_offset, NO_TIMESTAMP if log_append_time_ms is None else log_append_time_ms
        )

    def append_run(
        self, batches: Sequence[memoryview], headers: Sequence[BatchHeader], *, leader_epoch: int
    ) -> AppendResult | None:
        """Checked batches one behind the other, in one write: all of them, or None, and nothing was written, where they
        do not belong into one segment. Nothing but what is in front of their CRC is changed.
        """
        self._check_online()
        segment = self._segments[-1]
        base_offset = offset = segment.end_offset
        parts: list[bytes | memoryview] = []
        for batch, header in zip(batches, headers, strict=True):
            parts += (pack_front(offset, header.batch_length, leader_epoch), batch[FRONT_SIZE_BYTES:])
            offset += header.record_count
        size_bytes = sum(map(len, batches))
        now_ms = self._clock.now_ms()
        if segment.should_roll_before_run(headers, offset, size_bytes, self.config, now_ms):
            return None
        position = segment.size_bytes
        try:
            self._note_epoch(leader_epoch, base_offset)
            self._write(segment, parts, size_bytes)
        except OSError as error:
            raise storage_error(error) from error
        interval_bytes = self.config.index_interval_bytes
        segment.observe_appended(position, headers, append_ms=now_ms, index_interval_bytes=interval_bytes)
        self._unsynced[segment] = None
        return AppendResult(base_offset, offset - 1, NO_TIMESTAMP)

    def _write(self, segment: Segment, parts: list[bytes | memoryview], expected_bytes: int) -> None:
        """All parts, or the file as it was before."""
        size_before = segment.size_bytes
        try:
            written = segment.handle.append(parts)
            if written != expected_bytes:
                raise OSError(0, "the write was cut short: the disk is full, or failing")
        except OSError:
            self._roll_back(segment, size_before)
            raise

    def _roll_back(self, segment: Segment, size_bytes: int) -> None:
        try:
            segment.handle.truncate(size_bytes)
        except OSError:
            # Half a batch may lie at the end: an append behind it would be lost to every reader.
            self._go_offline()
            raise

    def _note_epoch(self, leader_epoch: int, base_offset: int) -> None:
        if leader_epoch == self._epochs.latest_epoch:
            return
        if leader_epoch < self._epochs.latest_epoch:
            raise BrokerError(
                ErrorCode.FENCED_LEADER_EPOCH,
                f"leader epoch {leader_epoch} is below the log's {self._epochs.latest_epoch}",
            )
        self._epochs.assign(leader_epoch, base_offset)
        self._write_epochs()

    def start_epoch(self, leader_epoch: int) -> None:
        """A leader's term begins here: what it appends starts at the present end."""
        self._check_online()
        self._note_epoch(leader_epoch, self.log_end_offset)

    def _write_epochs(self) -> None:
        """At once, but durable only with the next flush: it can be rebuilt from the batches. On a full disk a later
        flush writes it.
        """
        self._are_epochs_unsynced, self._recovery_point_max = True, self.recovery_point
        with unless_full():
            self._files.write_atomic(self._path(EPOCHS_FILE), self._epochs.format(), is_durable=False)

    def _write_holes(self) -> None:
        """Durable at once: sealed segments are not verified again at the next start."""
        holes = {segment.base_offset: segment.holes for segment in self._segments if segment.holes}
        self._files.write_atomic(self._path(QUARANTINE_FILE), format_holes(holes), is_durable=True)

    def roll(self) -> Segment:
        """Seal the active segment and begin the next. Does nothing if the active one is empty."""
        self._check_online()
        active = self._segments[-1]
        if active.size_bytes == 0:
            return active
        new = self._new_segment(active.end_offset)
        active.seal()
        self._unsynced[active] = None  # its indexes
        self._write_snapshot()
        self._segments.append(new)
        self._bases.append(new.base_offset)
        self._unsynced_dirs[self.directory] = None
        return new

    def _new_segment(self, base_offset: int) -> Segment:
        segment = create_segment(self._files, self.directory, base_offset, self._clock.now_ms())
        self._give_jitter(segment)
        return segment

    def _give_jitter(self, segment: Segment) -> None:
        segment.jitter_share = self._jitter() if self.config.segment_jitter_ms else 0.0

    def _remove_useless_snapshots(self, names: Sequence[str]) -> None:
        """`names` are what the directory held when the log was opened: it is listed again only where one may have to
        go, since recovery may have removed some with their segments.
        """
        offsets = snapshot_offsets(names)
        is_one_useful = len(offsets) == 1 and offsets[0] <= self.log_end_offset
        if offsets and not is_one_useful and self._snapshots.remove_useless(self.log_end_offset, self._bases):
            self._files.sync_dir(self.directory)

    def unsynced_parents(self) -> list[str]:
        """Directories above ours in which names of ours are not durable yet."""
        return [path for path in self._unsynced_dirs if path != self.directory]

    def note_dir_synced(self, path: str) -> None:
        """The caller synced a directory for many logs at once: names of ours in it are durable."""
        self._unsynced_dirs.pop(path, None)

    def _write_snapshot(self) -> None:
        packed = self.pack_producers()
        if packed is not None:
            self._snapshots.write(self.log_end_offset, packed)

    @contextmanager
    def room_for_aborted(self, count: int) -> Iterator[None]:
        """Around an append with so many abort markers: their entries in the index will have room. BrokerError: there is
        none on the disk, and nothing was appended.
        """
        if not count:
            yield
            return
        self._check_online()
        index = self._segments[-1].txn_index
        with storage_errors():
            index.reserve(count)
        try:
            yield
        finally:
            with storage_errors():
                index.release()

    def note_aborted(self, aborted: AbortedTransaction) -> None:
        """Its abort marker was just appended: readers of committed records pass over it from now on."""
        self._check_online()
        try:
            self._segments[-1].txn_index.append(aborted)
            self._unsynced_dirs[self.directory] = None
        except OSError as error:
            self._go_offline()  # the marker is in the log: without the entry its records would be shown as committed
            raise storage_error(error) from error

    def producer_snapshots(self) -> Iterator[tuple[int, bytes]]:
        """(offset, bytes) of each stored snapshot, newest first. Blocks: in a thread."""
        with storage_errors():
            yield from self._snapshots.newest_first()

    # --- durability

    def flush_job(self) -> FlushJob | None:
        """What is not yet durable, for a thread to sync. None if nothing is, or if a flush is already in flight."""
        if self.is_offline or self.is_closed or self._flush_in_flight is not None or not self._is_anything_unsynced:
            return None
        handles = [handle for segment in self._unsynced for handle in segment.synced_handles()]
        for handle in handles:
            handle.pin()
        # What there was no room for rides along: it is no reason to flush, or a full disk would be tried without rest.
        are_epochs_due = self._recovery_point_max is not None
        epochs = {self._path(EPOCHS_FILE): self._epochs.format()} if are_epochs_due else {}
        job = FlushJob(self._files, self.log_end_offset, handles, epochs, list(self._unsynced_dirs))
        self._unsynced, self._unsynced_dirs, self._are_epochs_unsynced = {}, {}, False
        self._flush_in_flight = job
        return job

    @property
    def _is_anything_unsynced(self) -> bool:
        return bool(self._unsynced or self._unsynced_dirs or self._are_epochs_unsynced)

    def on_flushed(self, job: FlushJob) -> int:
        """The durable end offset after a job has run. A failed one takes the log offline, for good."""
        assert job is self._flush_in_flight, "one flush at a time, reported once"
        self._flush_in_flight = None
        job.release()
        if self.is_closed:
            return self.durable_end_offset  # its files may be gone by now: no error of theirs matters
        if job.error is not None:
            self._go_offline()
            raise storage_error(job.error) from job.error
        if job.has_written_all and not self._are_epochs_unsynced:
            self._recovery_point_max = None
        self.durable_end_offset = max(self.durable_end_offset, min(job.end_offset, self.log_end_offset))
        return self.durable_end_offset

    @property
    def recovery_point(self) -> int:
        """Below it everything is durable, the epochs' checkpoint too, and the next start need not look."""
        limit = self._recovery_point_max
        return self.durable_end_offset if limit is None else min(self.durable_end_offset, limit)

    # --- verifying

    def verify_job(self, base_offset: int) -> VerifyJob | None:
        """To check every CRC of a sealed segment in a thread. None if there is no such segment."""
        self._check_online()
        segment = next((segment for segment in self._segments[:-1] if segment.base_offset == base_offset), None)
        if segment is None:
            return None
        epochs = EpochCache(list(self._epochs.entries))  # the thread's own: appends and cuts go on
        return VerifyJob.pinned(segment, epochs.epoch_of)

    def on_verified(self, job: VerifyJob) -> LogState:
        """What it found damaged is not served from now on."""
        job.release()
        if job.error is not None:
            raise storage_error(job.error) from job.error
        self._check_online()
        if job.segment in self._segments and job.holes != job.segment.holes:
            job.segment.holes = job.holes
            with storage_errors():
                self._write_holes()
        return self.state

    # --- mending

    def mending_of(self, base_offset: int, patches: Patches) -> Mending | None:
        """To make a damaged segment whole in a thread. None if it is the active one, or not damaged like that."""
        self._check_online()
        segment = next((segment for segment in self._segments[:-1] if segment.base_offset == base_offset), None)
        if segment is None or set(segment.holes) != set(patches) or self._compaction or self._swap:
            return None
        before = self._segments[: self._segments.index(segment)]
        return Mending(self._files, self.directory, self.config, segment, patches, before=before)

    def swap_in(self, cleaning: Swapping) -> list[DeletedSegment] | None:
        """Of a mended segment the quarantine is told before the swap is finished: a start that finishes it knows that
        there is nothing wrong with that segment any more, a later one would believe the list.
        """
        deleted = super().swap_in(cleaning)
        if deleted is not None and cleaning.is_of_damaged_log:
            try:
                with unless_full():  # then `on_mended` tries once more
                    self._write_holes()
            except OSError as error:
                self._go_offline()
                raise storage_error(error) from error
        return deleted

    def on_mended(self, patched: Iterable[BatchHeader]) -> LogState:
        """After `settle`: compaction may try again. Epochs may have been made anew while these batches could not be
        read.
        """
        news = [self._epochs.note_earlier(each.partition_leader_epoch, each.base_offset) for each in patched]
        with storage_errors():
            if any(news):
                self._write_epochs()
            self._write_holes()
        self.uncleanable = "" if not self.holes else self.uncleanable
        return self.state

    def find_aborted_again(self) -> None:
        """In a thread, while nothing is appended or removed: abort markers that came while the beginnings of their
        transactions could not be read are not in the indexes.
        """
        self._check_online()
        scan = AbortedScan()
        with storage_errors():
            for segment in self._segments:
                stored = segment.txn_index.entries()
                found = scan.entries_of(segment, stored)
                if found != stored:
                    segment.txn_index.replace(found)

    # --- removing

    def apply_retention(self, now_ms: int, *, high_watermark: int | None = None) -> list[DeletedSegment]:
        """Take out segments that are too old or too many, oldest first. The caller runs each one's `remove`.

        Files that wait (`removals`) are not among them: the first base offset tells whether anything was taken out.
        """
        self._check_online()
        if self._swap is not None:
            return []  # its files are about to get their names: next time
        limit = self.log_end_offset if high_watermark is None else high_watermark
        count = expired_count(self._segments, self.config, now_ms, limit, self.log_start_offset)
        with storage_errors():
            if count == len(self._segments):
                self.roll()
            return self._take_out(count)

    def delete_records_before(self, offset: int) -> list[DeletedSegment]:
        """Raise the log's start. Whole segments below it are taken out, as by retention."""
        self._check_online()
        if offset > self.log_end_offset or offset < 0:
            raise BrokerError(ErrorCode.OFFSET_OUT_OF_RANGE, f"the log ends at {self.log_end_offset}")
        self.log_start_offset = max(self.log_start_offset, offset)
        count = max(0, bisect_right(self._bases, self.log_start_offset) - 1) if self._swap is None else 0
        with storage_errors():
            return self._take_out(count)

    def _take_out(self, count: int) -> list[DeletedSegment]:
        deleted = []
        for segment in self._segments[:count]:
            self._unsynced.pop(segment, None)
            deleted.append(DeletedSegment.take_out(segment, self._files))
        del self._segments[:count], self._bases[:count]
        self.log_start_offset = max(self.log_start_offset, self._segments[0].base_offset)
        # Not from the log's start: a crash may forget that, and then what lies before it is there again.
        if count and self._epochs.truncate_from_start(self._segments[0].base_offset):
            self._write_epochs()
        return self._let_wait(deleted)

    def truncate_to(self, offset: int) -> None:
        """Drop every batch that reaches to or above `offset`, for good: blocks until the cut is durable.

        Never during a compaction's swap or a flush, and no recovery point may be left above the cut: a log that ends
        below its recovery point is damaged. That is the caller's to know.
        """
        self._check_online()
        assert self._swap is None, "no truncation while a compaction swaps segments"
        assert self._flush_in_flight is None, "what is flushed is not cut"
        with storage_errors():
            position = self._end_position(self._segments_from(offset)[0], offset)  # before anything is gone
        self.clean_end_offset = min(self.clean_end_offset, offset)
        try:
            while len(self._segments) > 1 and self._segments[-1].base_offset > offset:
                last = self._segments.pop()
                self._bases.pop()
                self._unsynced.pop(last, None)
                DeletedSegment.take_out(last, self._files).remove()
            self._snapshots.remove_above(offset)
            self._files.sync_dir(self.directory)  # a gap in the middle of a log must not be possible
            self._truncate_active(offset, position)
        except OSError as error:
            self._go_offline()  # some files are cut, some are not
            raise storage_error(error) from error

    def _truncate_active(self, offset: int, position: int) -> None:
        cut = self._segments[-1]
        cut.handle.truncate(position)
        cut.close()
        self._unsynced.pop(cut, None)
        holes = [hole.cut_to(offset) for hole in cut.holes if hole.start_offset < offset]
        active = reload_active(
            self._files,
            self.directory,
            cut.base_offset,
            self.config,
            end_offset=offset,
            holes=holes,
            epochs=self._epochs,
        )
        active.txn_index.replace([entry for entry in active.txn_index.entries() if entry.last_offset < offset])
        active.handle.sync()
        active.jitter_share = cut.jitter_share
        self._segments[-1] = active
        if active.ends_in_hole:
            self._begin_behind(active)
        self.durable_end_offset = min(self.durable_end_offset, self.log_end_offset)
        if self.durable_end_offset < self.log_end_offset:
            self._unsynced[active] = None  # or no flush would ever say that what is left is durable
        if self._epochs.truncate_from_end(self.log_end_offset - 1):  # what is left without records goes as well
            self._write_epochs()
        if active.holes != cut.holes:
            self._write_holes()
        for hole in active.holes if active.holes != holes else ():
            self.on_doubted(hole.start_offset)

    def _begin_behind(self, damaged: Segment) -> None:
        """What is lost at its end will be mended there: appends need another segment."""
        damaged.seal(is_durable=True)
        new = self._new_segment(damaged.end_offset)
        self._segments.append(new)
        self._bases.append(new.base_offset)
        self._files.sync_dir(self.directory)

    def delete(self, *, renamed_to: str | None = None) -> None:
        """The partition is gone: close and remove its directory, under another name first if one is given. Blocks."""
        self.is_closed = True
        self._close_segments()
        directory = self.directory
        if renamed_to is not None:
            self._files.rename(directory, renamed_to)
            directory = renamed_to
        remove_partition_dir(self._files, directory)

    def close(self) -> None:
        """Write the caches and let go of the files. Does not sync records: flush before, if that matters."""
        if not self.is_offline and not self.is_closed:
            active = self._segments[-1]
            if active.size_bytes:
                # Half an index of one entry is none: small logs, which may be many, stop without a sync.
                active.seal(is_durable=active.time_index.entry_count > 0)
            if self.log_end_offset:
                self._write_snapshot()
        self.is_closed = True
        self._close_segments()

    def _path(self, name: str) -> str:
        return f"{self.directory}/{name}"
