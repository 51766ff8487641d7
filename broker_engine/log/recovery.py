"""Opening a partition directory: which segments there are, where the log really ends, what the caches should say.

Segments wholly below the recovery point are taken as sound. The rest is verified batch by batch (segment_recovery): a
bad batch at or above the recovery point ends the log there, and the segments behind it go; below the recovery point it
is damage, and stays (damage). Without a recovery point everything is verified, and segments behind a bad batch are put
aside under another name rather than removed: nobody can tell whether they were once durable.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from heapq import merge
from itertools import chain, pairwise
from operator import attrgetter

from broker_engine.log import txn_index
from broker_engine.log.checkpoints import EPOCHS_FILE, EpochCache, EpochStart
from broker_engine.log.config import LogConfig
from broker_engine.log.damage import QUARANTINE_FILE, Hole, Holes, format_holes, parse_holes
from broker_engine.log.file_seam import Files
from broker_engine.log.flush import unless_full
from broker_engine.log.layout import parents_of
from broker_engine.log.scan import scan_batches
from broker_engine.log.segment import (
    DELETED_SUFFIX,
    INDEX_SUFFIX,
    LOG_SUFFIX,
    SEGMENT_SUFFIXES,
    TIME_INDEX_SUFFIX,
    TXN_INDEX_SUFFIX,
    MaxTimestamp,
    Segment,
    segment_path,
)
from broker_engine.log.segment_recovery import SegmentPlan, open_segment, recover_segment, stored_indexes
from broker_engine.log.swap import complete_swaps, swapped_bases
from broker_engine.records.header import BatchHeader

log = logging.getLogger(__name__)

CUT_OFF_SUFFIX = ".cut-off"
"""Of segments behind a place where a log without a recovery point was cut."""
_LEFTOVER_SUFFIXES = (DELETED_SUFFIX, ".tmp")
_BASE_OFFSET_DIGITS = 20


@dataclass(slots=True)
class LoadedLog:
    segments: list[Segment]
    epochs: EpochCache
    cut_bytes: int = 0
    """How much of a torn tail was removed."""
    have_epochs_changed: bool = False
    have_holes_changed: bool = False
    ends_in_hole: bool = False
    """The last segment is damaged to its end: appends need a new one."""


def load_log(
    files: Files, directory: str, names: Sequence[str], config: LogConfig, *, recovery_point: int | None
) -> LoadedLog:
    """Every segment of a directory with these names in it, the last one ready for appends. Empty if there is none."""
    known_holes = _forget_mended(files, directory, names) if QUARANTINE_FILE in names else {}
    bases = find_bases(files, directory, names)
    if not bases:
        return LoadedLog([], EpochCache())
    stored_epochs = EpochCache.parse(files.read_small(f"{directory}/{EPOCHS_FILE}")) if EPOCHS_FILE in names else None
    loader = _Loader(files, directory, config, stored_epochs, recovery_point, known_holes=known_holes)
    loader.load(bases)
    epochs, segments = loader.epochs, loader.segments
    if stored_epochs is None or loader.are_epochs_doubtful or _is_contradicted(epochs, segments, recovery_point or 0):
        epochs = _rebuild_epochs(segments, epochs)
    epochs.truncate_from_end(segments[-1].end_offset)
    _sync_what_may_be_in_the_page_cache(files, directory, segments, recovery_point)
    found_holes = {segment.base_offset: segment.holes for segment in segments if segment.holes}
    return LoadedLog(
        segments,
        epochs,
        loader.cut_bytes,
        # No file says as much as an empty one: thousands of partitions that nobody wrote to need none.
        have_epochs_changed=epochs.entries != (() if stored_epochs is None else stored_epochs.entries),
        have_holes_changed=found_holes != loader.known_holes,
        ends_in_hole=loader.ends_in_hole,
    )


def reload_active(
    files: Files,
    directory: str,
    base_offset: int,
    config: LogConfig,
    *,
    end_offset: int,
    holes: Sequence[Hole],
    epochs: EpochCache,
) -> Segment:
    """A segment that was cut at `end_offset` and is the last one now. What does not verify below that was sound once.

    `holes` are those known below the cut.
    """
    plan = SegmentPlan(
        files=files,
        directory=directory,
        base_offset=base_offset,
        config=config,
        recovery_point=end_offset,
        known_holes=holes,
        next_base=end_offset,
        is_cut=True,
        noted=epochs,
    )
    segment = recover_segment(plan, EpochCache()).segment
    if holes and holes[-1].position == segment.size_bytes:  # none of its bytes is left to be found
        segment.holes.append(holes[-1])
        segment.end_offset = end_offset
    return segment


class _Loader:
    def __init__(
        self,
        files: Files,
        directory: str,
        config: LogConfig,
        epochs: EpochCache | None,
        recovery_point: int | None,
        *,
        known_holes: Holes,
    ) -> None:
        self._files = files
        self._directory = directory
        self._config = config
        self._is_point_known = recovery_point is not None
        self._recovery_point = recovery_point or 0
        self._noted = epochs or EpochCache()
        self.epochs = EpochCache(list(self._noted.entries))
        self.known_holes = known_holes
        self.segments: list[Segment] = []
        self.cut_bytes = 0
        self.are_epochs_doubtful = False
        self.ends_in_hole = False
        self._stale_txn_indexes: list[Segment] = []

    def load(self, bases: list[int]) -> None:
        for base, next_base in pairwise([*bases, None]):
            assert base is not None
            if self._load_trusted(base, next_base):
                continue
            if not self._recover(base, next_base):
                self._drop([later for later in bases if later > base])
                break
        txn_index.rebuild(self.segments, self._stale_txn_indexes)

    def _load_trusted(self, base: int, next_base: int | None) -> bool:
        """A sealed segment below the recovery point with indexes that make sense is not looked at any further."""
        # At the recovery point itself: the flush that reached it may have come before the indexes were written.
        if next_base is None or next_base >= self._recovery_point:
            return False
        segment = open_segment(self._files, self._directory, base)
        offset_index, time_index = stored_indexes(segment, self._files)
        last = time_index.last if time_index else None
        if offset_index is None or time_index is None or not (last or segment.size_bytes == 0):
            segment.close()
            return False
        segment.offset_index, segment.time_index = offset_index, time_index
        if last:
            segment.max_timestamp = MaxTimestamp(last[0], base + last[1])
            segment.newest_ms = min(last[0], segment.created_ms)
        segment.end_offset = next_base
        segment.holes = list(self.known_holes.get(base, []))
        if not segment.txn_index.is_well_formed:
            self._stale_txn_indexes.append(segment)
        self.segments.append(segment)
        return True

    def _recover(self, base: int, next_base: int | None) -> bool:
        """False if the log ends in this segment, though others follow."""
        known_holes = self.known_holes.get(base, ())
        # A sealed segment below the recovery point whose indexes are gone was durable as a whole.
        point = max(self._recovery_point, base)
        if next_base is not None and known_holes:  # no torn tail, though no checkpoint may have been written since
            point = max(point, known_holes[-1].end_offset)
        plan = SegmentPlan(
            files=self._files,
            directory=self._directory,
            base_offset=base,
            config=self._config,
            recovery_point=point,
            known_holes=known_holes,
            next_base=next_base,
            following=None if next_base is None else self._first_batch(next_base),
            noted=self._noted,
        )
        recovery = recover_segment(plan, self.epochs)
        segment = recovery.segment
        self.are_epochs_doubtful |= bool(self.segments) and recovery.has_news_at_start
        self.segments.append(segment)
        self.cut_bytes += recovery.cut_bytes
        if recovery.is_txn_index_doubtful:
            self._stale_txn_indexes.append(segment)
        self.ends_in_hole = segment.ends_in_hole and next_base is None
        if next_base is None:
            if segment.ends_in_hole:
                segment.seal(is_durable=True)
            return True
        if recovery.ends_early:
            return False
        segment.end_offset = next_base
        segment.seal(is_durable=True)
        return True

    def _first_batch(self, base: int) -> BatchHeader | None:
        """Of a segment that was not looked at yet; None where it could not say anything of the one before."""
        if any(hole.position == 0 for hole in self.known_holes.get(base, ())):
            return None
        segment = open_segment(self._files, self._directory, base)
        try:
            first = next(scan_batches(segment.handle, 0, verify=True), None)
        finally:
            segment.close()
        return first.header if first is not None and first.header.base_offset >= base else None

    def _drop(self, bases: list[int]) -> None:
        log.error("the log ends at %d: %d later segments go", self.segments[-1].end_offset, len(bases))
        for base in bases:
            for suffix in SEGMENT_SUFFIXES:
                path = segment_path(self._directory, base, suffix)
                if self._files.exists(path):
                    self._put_away(path)
        self._files.sync_dir(self._directory)  # a gap in the middle of a log must not be possible

    def _put_away(self, path: str) -> None:
        if self._is_point_known:
            self._files.unlink(path)
        else:
            self._files.rename(path, path + CUT_OFF_SUFFIX)


def _forget_mended(files: Files, directory: str, names: Sequence[str]) -> Holes:
    """The holes that are noted, but for those of segments whose mended copies are about to take their places. Durable
    before they do: a later start could not tell that such a hole is none any more.
    """
    path, mended = f"{directory}/{QUARANTINE_FILE}", swapped_bases(names)
    noted = parse_holes(files.read_small(path))
    left = {base: holes for base, holes in noted.items() if base not in mended}
    if left != noted:
        with unless_full():
            files.write_atomic(path, format_holes(left), is_durable=True)
    return left


def find_bases(files: Files, directory: str, names: Sequence[str]) -> list[int]:
    names = complete_swaps(files, directory, names)
    for name in names:
        if name.endswith(_LEFTOVER_SUFFIXES):
            files.unlink(f"{directory}/{name}")
    stems = (name.removesuffix(LOG_SUFFIX) for name in names if name.endswith(LOG_SUFFIX))
    bases = sorted(int(stem) for stem in stems if len(stem) == _BASE_OFFSET_DIGITS and stem.isdecimal())
    _remove_orphan_indexes(files, directory, names, bases)
    return bases


def _remove_orphan_indexes(files: Files, directory: str, names: Sequence[str], bases: list[int]) -> None:
    """An index whose log is gone is what a crash left of a deletion; a later segment could get the same name."""
    known = {f"{base:0{_BASE_OFFSET_DIGITS}d}" for base in bases}
    for name in names:
        for suffix in (INDEX_SUFFIX, TIME_INDEX_SUFFIX, TXN_INDEX_SUFFIX):
            if name.endswith(suffix) and name.removesuffix(suffix) not in known:
                files.unlink(f"{directory}/{name}")


def _is_contradicted(epochs: EpochCache, segments: list[Segment], recovery_point: int) -> bool:
    """Does a batch above the recovery point tell another story? The checkpoint may be from before a truncation."""
    # The last batch too: the checkpoint may say that its epoch began behind what is left of the log.
    last_offset = segments[-1].end_offset - 1
    if last_offset >= max(recovery_point, segments[0].base_offset):
        last_epoch = _epoch_at(segments, last_offset)
        if last_epoch is not None and last_epoch != epochs.epoch_of(last_offset):
            return True
    for before, entry in pairwise([None, *epochs.entries]):
        assert entry is not None
        if not recovery_point <= entry.start_offset < segments[-1].end_offset:
            continue
        if not _may_be_of(entry.epoch, segments, entry.start_offset):
            return True
        has_batch_before = entry.start_offset > segments[0].base_offset
        if before and has_batch_before and not _may_be_of(before.epoch, segments, entry.start_offset - 1):
            return True
    return False


def _may_be_of(epoch: int, segments: list[Segment], offset: int) -> bool:
    """What is lost to damage contradicts nobody."""
    return _is_damaged_at(segments, offset) or _epoch_at(segments, offset) == epoch


def _is_damaged_at(segments: list[Segment], offset: int) -> bool:
    return _segment_of(segments, offset).hole_at(offset) is not None


def _epoch_at(segments: list[Segment], offset: int) -> int | None:
    batch = _segment_of(segments, offset).locate(offset)
    return batch.header.partition_leader_epoch if batch else None


def _segment_of(segments: list[Segment], offset: int) -> Segment:
    return next((each for each in reversed(segments) if each.base_offset <= offset), segments[0])


def _rebuild_epochs(segments: list[Segment], noted: EpochCache) -> EpochCache:
    """From the batches; `noted` is what is left to say which epochs begin in damaged places."""
    in_holes = (entry for entry in noted.entries if _is_damaged_at(segments, entry.start_offset))
    told = merge(_told_by_batches(segments), in_holes, key=attrgetter("start_offset"))
    epochs = EpochCache()
    for start, following in pairwise(chain(told, [None])):
        assert start is not None
        # An epoch never falls: the higher one of two is rotten, in a segment that nobody has verified.
        if following is None or start.epoch <= following.epoch:
            epochs.assign(*start)
    return epochs


def _told_by_batches(segments: list[Segment]) -> Iterator[EpochStart]:
    for segment in segments:
        for batch in segment.batches_near(segment.base_offset):
            yield EpochStart(batch.header.partition_leader_epoch, batch.header.base_offset)


def _sync_what_may_be_in_the_page_cache(
    files: Files, directory: str, segments: list[Segment], recovery_point: int | None
) -> None:
    """What we are about to serve as durable may have outlived its process only, not yet a power failure."""
    durable_offset = recovery_point or 0
    if segments[-1].end_offset <= durable_offset:
        return
    for segment in segments:
        if segment.end_offset > durable_offset:
            segment.handle.sync()
    for path in (directory, *([] if durable_offset else parents_of(directory))):
        files.sync_dir(path)
