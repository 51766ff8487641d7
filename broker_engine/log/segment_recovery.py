"""Verifying one segment whose end is not known to be durable: where it really ends, and what its indexes should say.

A bad batch at or above the recovery point is a torn tail, and cut. Below it, it is damage to something that was durable
once: a hole, behind which the search for the next sound batch goes on.

No CRC covers a batch's offset and its leader epoch. Of the batch, the one behind it and the epochs' checkpoint, two
that agree are believed.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from broker_engine.log.checkpoints import NO_EPOCH, EpochCache
from broker_engine.log.config import LogConfig
from broker_engine.log.damage import Hole, find_next_batch
from broker_engine.log.file_seam import Files
from broker_engine.log.index import OFFSET_ENTRY, TIME_ENTRY, GrowingIndex, StoredIndex
from broker_engine.log.plain_run import UNUSUAL_BITS, RunLimits, RunState, pass_plain_batches
from broker_engine.log.scan import ScannedBatch, Window, scan_batches
from broker_engine.log.segment import (
    INDEX_SUFFIX,
    LOG_SUFFIX,
    RELATIVE_OFFSET_MAX,
    TIME_INDEX_SUFFIX,
    TXN_INDEX_SUFFIX,
    MaxTimestamp,
    Segment,
    segment_path,
)
from broker_engine.records.header import LOG_OVERHEAD_BYTES, BatchHeader


@dataclass(frozen=True, slots=True, kw_only=True)
class SegmentPlan:
    """What is known of a segment before anybody has looked into it."""

    files: Files
    directory: str
    base_offset: int
    config: LogConfig
    recovery_point: int
    known_holes: Sequence[Hole] = ()
    next_base: int | None = None
    """Where the next segment begins; None for the last one."""
    following: BatchHeader | None = None
    """The next segment's first batch, where that one verifies."""
    is_cut: bool = False
    """On purpose: nothing is missing at its end, and its stored indexes may be of what was there before."""
    noted: EpochCache = field(default_factory=EpochCache)
    """What the epochs' checkpoint says; empty where there is none."""

    def bad_positions(self) -> set[int]:
        """Not all that is wrong with a batch can be seen again. Above the recovery point it may be another one."""
        return {hole.position for hole in self.known_holes if hole.end_offset <= self.recovery_point}


class _Leap(NamedTuple):
    """A batch that begins later than the one before it ends, or in another epoch than that or the checkpoint's."""

    position: int
    end_offset: int
    end_offset_min: int
    """Where it would end without a gap before it."""
    epoch: int
    epoch_before: int
    epoch_noted: int
    """By the checkpoint."""

    def is_contradicted_by(self, header: BatchHeader, *, is_noted: bool) -> bool:
        """By a sound one behind it, which would fit if the leap were none; `is_noted`: in the checkpoint's epoch."""
        if self.end_offset_min <= header.base_offset < self.end_offset:
            return True
        epoch_behind = header.partition_leader_epoch
        if self.epoch in (self.epoch_noted, epoch_behind):
            return False
        is_noted_otherwise = is_noted and self.epoch_noted != NO_EPOCH
        return is_noted_otherwise or self.epoch_before <= epoch_behind < self.epoch


class SegmentRecovery:
    """Use once: `run`, then look at `segment` and the flags. By way of `recover_segment`."""

    def __init__(self, plan: SegmentPlan, epochs: EpochCache, *, bad_positions: Collection[int] = ()) -> None:
        """At `bad_positions` lie batches that are known not to be as they were written."""
        self.segment = open_segment(plan.files, plan.directory, plan.base_offset)
        self.cut_bytes = 0
        """How much of a torn tail was removed."""
        self.has_news_at_start = False
        """The first batch is of an epoch that the checkpoint does not know: it may lack others before."""
        self.is_txn_index_doubtful = plan.files.exists(self.segment.path(TXN_INDEX_SUFFIX))
        """It says something, or there are markers, that are not covered by the recovery point."""
        self.has_gaps = False
        """Some offsets are not there, as compaction leaves it."""
        self.suspect_position: int | None = None
        """Of a batch that the next one contradicts: nothing was cut, all has to begin anew without it."""
        self._plan = plan
        self._epochs = epochs
        self._bad_positions = bad_positions
        self._leap: _Leap | None = None
        self._is_verifying_all = True
        self._epoch = -1
        """Of the batch before; -1 where none was looked at yet."""

    def run(self) -> None:
        segment, recovery_point = self.segment, self._plan.recovery_point
        position = 0 if self._plan.known_holes or self._plan.is_cut else self._trusted_position()
        if self._holds_more_than_was_promised(position):
            # The last process may have stopped because a sync failed: the cache still shows what the disk never got.
            segment.handle.forget_cached(position)
        if position and next(scan_batches(segment.handle, position, verify=True), None) is None:
            position = self._distrust()
        position = self._scan(position)
        while position < segment.size_bytes and segment.end_offset < recovery_point:
            position = self._scan(self._pass_over(position))
        if self.suspect_position is not None or self._is_leap_contradicted_by(self._plan.following):
            return
        if position < segment.size_bytes:
            self.cut_bytes = segment.size_bytes - position
            segment.handle.truncate(position)
        elif self._is_short and segment.end_offset < recovery_point and not self._plan.is_cut:
            self._add_hole(self._durable_end, position, position)

    def _holds_more_than_was_promised(self, position: int) -> bool:
        """After a clean stop it does not, and thousands of partitions need not wait for the disk."""
        end_position, end_offset = position, self.segment.base_offset
        for batch in scan_batches(self.segment.handle, position):
            end_position, end_offset = batch.end_position, batch.header.next_offset
            if end_offset > self._plan.recovery_point:
                return True
        return end_position != self.segment.size_bytes

    @property
    def ends_early(self) -> bool:
        """Was the end of a sealed segment lost, so that the log ends here?"""
        return self.cut_bytes > 0 or self._is_short

    @property
    def _is_short(self) -> bool:
        """The last one may always be. Where compaction was at work, batches may be missing before any border.

        Ours leaves a mark there; one of Kafka's leaves none, but what it cleaned was flushed before.
        """
        plan = self._plan
        if plan.next_base is None:
            return True
        is_compacted = self.has_gaps or (plan.config.is_compacting and plan.next_base <= plan.recovery_point)
        return self.segment.end_offset < plan.next_base and not is_compacted

    @property
    def _durable_end(self) -> int:
        """How far this segment reached once."""
        return self._plan.recovery_point if self._plan.next_base is None else self._plan.next_base

    def _scan(self, position: int) -> int:
        """Take in batches from `position`; where the first one that does not fit begins, or the file ends.

        A crash leaves gigabytes to this loop: ordinary batches are passed many at a time, the rest one by one.
        """
        segment = self.segment
        append_ms, interval_bytes = segment.created_ms, self._plan.config.index_interval_bytes
        window, end = Window(segment.handle, verify=True), segment.size_bytes
        while (header := window.batch_at(position, end)) is not None and self._fits(header, position):
            self._note_exceptions(header, position)
            segment.observe(position, header, append_ms=append_ms, index_interval_bytes=interval_bytes)
            position = self._pass_plain(window, position + header.batch_length + LOG_OVERHEAD_BYTES)
        return position

    def _fits(self, header: BatchHeader, position: int) -> bool:
        if self._is_leap_contradicted_by(header):
            return False
        return self._may_lie_at(position, header) and header.partition_leader_epoch >= self._epoch

    def _may_lie_at(self, position: int, header: BatchHeader) -> bool:
        next_base = self._plan.next_base
        is_inside = next_base is None or header.next_offset <= next_base
        return is_inside and self.segment.has_room_for(header) and position not in self._bad_positions

    def _is_leap_contradicted_by(self, header: BatchHeader | None) -> bool:
        """By what comes next; None: nothing does, so that nobody can."""
        leap = self._leap
        if header is None or leap is None or leap.end_offset != self.segment.end_offset:
            return False  # or another one was taken in behind it, and agreed
        is_noted = self._plan.noted.epoch_of(header.base_offset) == header.partition_leader_epoch
        if leap.is_contradicted_by(header, is_noted=is_noted):
            self.suspect_position = leap.position
            return True
        return False

    def _pass_plain(self, window: Window, position: int) -> int:
        """Behind a batch that was taken in: past the ordinary ones that are in memory and get no index entry."""
        segment = self.segment
        limits = RunLimits(
            leader_epoch=self._epoch,
            last_offset_max=self._plain_offset_max(),
            timestamp_max=segment.created_ms,
            size_bytes_max=segment.bytes_to_entry(self._plan.config.index_interval_bytes),
        )
        state = RunState(segment.end_offset, *segment.max_timestamp)
        end, state = pass_plain_batches(window.view, position - window.start, state, limits)
        size_bytes = end + window.start - position
        if size_bytes:
            segment.observe_run(state, size_bytes)
        return position + size_bytes

    def _plain_offset_max(self) -> int:
        """Where the segment ends, or the checkpoint has another epoch begin, is no ordinary place."""
        offset_max = self.segment.base_offset + RELATIVE_OFFSET_MAX
        if self._plan.next_base is not None:
            offset_max = min(offset_max, self._plan.next_base - 1)
        epoch_start = self._plan.noted.first_start_from(self.segment.end_offset)
        return offset_max if epoch_start is None else min(offset_max, epoch_start - 1)

    def _note_exceptions(self, header: BatchHeader, position: int) -> None:
        if header.attributes & UNUSUAL_BITS or header.record_count <= header.last_offset_delta:
            self._note_unusual(header)
        if header.base_offset > self.segment.end_offset and self._epoch >= 0:
            self.has_gaps = True
        end_offset_min, epoch = self.segment.end_offset + header.last_offset_delta + 1, header.partition_leader_epoch
        epoch_noted = self._plan.noted.epoch_of(header.base_offset)
        if header.next_offset > end_offset_min or epoch > self._epoch or epoch != epoch_noted:
            self._leap = _Leap(position, header.next_offset, end_offset_min, epoch, self._epoch, epoch_noted)
        if header.partition_leader_epoch != self._epoch:
            self._note_epoch(header, is_first=position == 0)

    def _note_unusual(self, header: BatchHeader) -> None:
        is_covered = not self._is_verifying_all and header.base_offset < self._plan.recovery_point
        if header.is_control and header.is_transactional and not is_covered:
            self.is_txn_index_doubtful = True
        if header.has_delete_horizon or header.record_count <= header.last_offset_delta:
            self.has_gaps = True

    def _note_epoch(self, header: BatchHeader, *, is_first: bool) -> None:
        self._epoch = header.partition_leader_epoch
        is_news = self._epochs.assign(self._epoch, header.base_offset)
        self.has_news_at_start |= is_news and is_first

    def _pass_over(self, position: int) -> int:
        """Note the damage at `position`; where the next sound batch begins, or the file ends."""
        following = self._next_sound(position)
        if following is None:
            self._add_hole(self._durable_end, position, self.segment.size_bytes)
            return self.segment.size_bytes
        self._add_hole(following.header.base_offset, position, following.position)
        return following.position

    def _next_sound(self, position: int) -> ScannedBatch | None:
        segment = self.segment
        while (found := find_next_batch(segment.handle, position, segment.end_offset)) is not None:
            if self._may_lie_at(found.position, found.header):
                return found
            position = found.end_position - 1
        return None

    def _add_hole(self, end_offset: int, position: int, end_position: int) -> None:
        self.segment.holes.append(Hole(self.segment.end_offset, end_offset, position, end_position))
        self.segment.end_offset = end_offset

    def _trusted_position(self) -> int:
        """Take over index entries below the recovery point; the position of the last one."""
        segment = self.segment
        offset_index, time_index = stored_indexes(segment, self._plan.files)
        if offset_index is None or time_index is None:
            return 0
        offsets = GrowingIndex(OFFSET_ENTRY, offset_index.read_all())
        times = GrowingIndex(TIME_ENTRY, time_index.read_all())
        offset_index.close()
        time_index.close()
        offsets.drop_from(key=self._plan.recovery_point - segment.base_offset)
        _drop_uncovered(offsets, times)
        last = offsets.last
        times.drop_from(value=last[0] if last else 0)
        if last is None:
            return 0
        segment.offset_index, segment.time_index = offsets, times
        if latest := times.last:
            segment.max_timestamp = MaxTimestamp(latest[0], segment.base_offset + latest[1])
            segment.newest_ms = min(latest[0], segment.created_ms)
        first = next(scan_batches(segment.handle, 0), None)
        segment.first_timestamp = first.header.max_timestamp if first else None
        self._is_verifying_all = False
        entries = segment.txn_index.entries() if segment.txn_index.is_well_formed else None
        self.is_txn_index_doubtful = entries is None or any(e.last_offset >= self._plan.recovery_point for e in entries)
        return last[1]

    def _distrust(self) -> int:
        """The batch at the last index entry is bad: only a scan from the start tells which offset it has."""
        segment = self.segment
        segment.offset_index, segment.time_index = GrowingIndex(OFFSET_ENTRY), GrowingIndex(TIME_ENTRY)
        segment.max_timestamp, segment.first_timestamp = MaxTimestamp(), None
        self._is_verifying_all = self.is_txn_index_doubtful = True
        return 0


def recover_segment(plan: SegmentPlan, epochs: EpochCache) -> SegmentRecovery:
    """`epochs` learn what the batches say."""
    bad_positions, entries = plan.bad_positions(), epochs.entries
    while True:
        recovery = SegmentRecovery(plan, epochs, bad_positions=bad_positions)
        recovery.run()
        if recovery.suspect_position is None:
            return recovery
        bad_positions.add(recovery.suspect_position)
        epochs.restore(entries)
        recovery.segment.close()


def open_segment(files: Files, directory: str, base_offset: int) -> Segment:
    path = segment_path(directory, base_offset, LOG_SUFFIX)
    modified_ms = files.modified_ms(path)
    return Segment(files, directory, base_offset, files.open(path), created_ms=modified_ms)


def stored_indexes(segment: Segment, files: Files) -> tuple[StoredIndex | None, StoredIndex | None]:
    """Each index if its file makes sense."""
    offset_index = _sane(StoredIndex(OFFSET_ENTRY, files, segment.path(INDEX_SUFFIX)))
    time_index = _sane(StoredIndex(TIME_ENTRY, files, segment.path(TIME_INDEX_SUFFIX)))
    if offset_index and (last := offset_index.last) and not 0 < last[1] < segment.size_bytes:
        offset_index = None  # zero-filled, or of another file: every entry points behind the first batch
    if time_index and (last := time_index.last) and (last[0] <= 0 or last[1] < 0):
        time_index = None
    return offset_index, time_index


def _drop_uncovered(offsets: GrowingIndex, times: GrowingIndex) -> None:
    """Forget offset entries behind which times may be missing.

    The files of a segment that was just sealed are not durable yet, and a crash may keep more of one than of the other.
    Both get an entry at the same batches, the times only where the highest grew: one behind an offset entry says that
    all before the next are there.
    """
    newest = times.last
    keys = [key for key, _ in OFFSET_ENTRY.iter_unpack(offsets.pack())]
    covered_count = bisect_left(keys, newest[1]) + 1 if newest else 0
    if covered_count < len(keys):
        offsets.drop_from(key=keys[covered_count])


def _sane(index: StoredIndex) -> StoredIndex | None:
    return index if index.is_well_formed else None
