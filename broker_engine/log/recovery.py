"""Opening a partition directory: which segments there are, where the log really ends, what the caches should say.

Without a recovery point the last segment is scanned whole, every CRC verified, and cut where the first bad batch
begins: that is a torn tail. With one, everything below it is taken as sound, and a bad batch there is corruption: the
log refuses to open rather than cut what was once durable.

Left for issue 4: producer snapshots (the caller replays all headers), unfinished compactions, verifying sealed segments
above a recovery point that lies in one of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

from broker_engine.errors import BrokerError, ErrorCode
from broker_engine.log.checkpoints import EPOCHS_FILE, EpochCache
from broker_engine.log.config import LogConfig
from broker_engine.log.file_seam import Files
from broker_engine.log.index import OFFSET_ENTRY, TIME_ENTRY, GrowingIndex, StoredIndex
from broker_engine.log.scan import scan_batches
from broker_engine.log.segment import (
    DELETED_SUFFIX,
    INDEX_SUFFIX,
    LOG_SUFFIX,
    TIME_INDEX_SUFFIX,
    MaxTimestamp,
    Segment,
    segment_path,
)

_LEFTOVER_SUFFIXES = (DELETED_SUFFIX, ".tmp", ".cleaned")
_UNFINISHED_SWAP_SUFFIX = ".swap"
_BASE_OFFSET_DIGITS = 20


@dataclass(slots=True)
class LoadedLog:
    segments: list[Segment]
    epochs: EpochCache
    cut_bytes: int
    """How much of a torn tail was removed."""
    have_epochs_changed: bool


def load_log(files: Files, directory: str, config: LogConfig, *, recovery_point: int | None) -> LoadedLog:
    """Every segment of an existing directory, the last one ready for appends. Empty if there is none."""
    bases = _find_bases(files, directory)
    if not bases:
        return LoadedLog([], EpochCache(), 0, have_epochs_changed=False)
    stored_epochs = _read_epochs(files, directory)
    epochs = EpochCache(list(stored_epochs.entries)) if stored_epochs else EpochCache()
    sealed = [_load_sealed(files, directory, base, next_base, config) for base, next_base in pairwise(bases)]
    loader = _ActiveLoader(files, directory, bases[-1], config, epochs)
    active, cut_bytes = loader.load(recovery_point)
    segments = [*sealed, active]
    if stored_epochs is None or (sealed and loader.has_news_at_start):
        epochs = _rebuild_epochs(segments)
    epochs.truncate_from_end(active.end_offset)
    _sync_what_may_be_in_the_page_cache(files, directory, segments, recovery_point)
    changed = stored_epochs is None or stored_epochs.entries != epochs.entries
    return LoadedLog(segments, epochs, cut_bytes, have_epochs_changed=changed)


def reload_active(files: Files, directory: str, base_offset: int, config: LogConfig) -> Segment:
    """A segment that was cut, or was sealed and is the last one again."""
    active, _ = _ActiveLoader(files, directory, base_offset, config, EpochCache()).load(recovery_point=None)
    return active


def _find_bases(files: Files, directory: str) -> list[int]:
    names = files.list_dir(directory)
    if any(name.endswith(_UNFINISHED_SWAP_SUFFIX) for name in names):
        raise BrokerError(ErrorCode.KAFKA_STORAGE_ERROR, "an unfinished compaction of Apache Kafka is in the directory")
    for name in names:
        if name.endswith(_LEFTOVER_SUFFIXES):
            files.unlink(f"{directory}/{name}")
    stems = (name.removesuffix(LOG_SUFFIX) for name in names if name.endswith(LOG_SUFFIX))
    bases = sorted(int(stem) for stem in stems if len(stem) == _BASE_OFFSET_DIGITS and stem.isdecimal())
    _remove_orphan_indexes(files, directory, names, bases)
    return bases


def _remove_orphan_indexes(files: Files, directory: str, names: list[str], bases: list[int]) -> None:
    """An index whose log is gone is what a crash left of a deletion; a later segment could get the same name."""
    known = {f"{base:0{_BASE_OFFSET_DIGITS}d}" for base in bases}
    for name in names:
        for suffix in (INDEX_SUFFIX, TIME_INDEX_SUFFIX):
            if name.endswith(suffix) and name.removesuffix(suffix) not in known:
                files.unlink(f"{directory}/{name}")


def _read_epochs(files: Files, directory: str) -> EpochCache | None:
    path = f"{directory}/{EPOCHS_FILE}"
    return EpochCache.parse(files.read_small(path)) if files.exists(path) else None


def _open_segment(files: Files, directory: str, base_offset: int) -> Segment:
    path = segment_path(directory, base_offset, LOG_SUFFIX)
    modified_ms = files.modified_ms(path)
    return Segment(files, directory, base_offset, files.open(path), created_ms=modified_ms)


def _load_sealed(files: Files, directory: str, base: int, next_base: int, config: LogConfig) -> Segment:
    segment = _open_segment(files, directory, base)
    offset_index, time_index = _stored_indexes(segment, files)
    last = time_index.last if time_index else None
    if offset_index is not None and time_index is not None and (last or segment.size_bytes == 0):
        segment.offset_index, segment.time_index = offset_index, time_index
        if last:
            segment.max_timestamp = MaxTimestamp(last[0], base + last[1])
            segment.newest_ms = min(last[0], segment.created_ms)
    else:
        _rebuild_sealed(segment, config)
    segment.end_offset = next_base
    return segment


def _stored_indexes(segment: Segment, files: Files) -> tuple[StoredIndex | None, StoredIndex | None]:
    offset_index = _sane(StoredIndex(OFFSET_ENTRY, files, segment.path(INDEX_SUFFIX)))
    time_index = _sane(StoredIndex(TIME_ENTRY, files, segment.path(TIME_INDEX_SUFFIX)))
    if offset_index and (last := offset_index.last) and not 0 < last[1] < segment.size_bytes:
        offset_index = None  # zero-filled, or of another file: every entry points behind the first batch
    if time_index and (last := time_index.last) and (last[0] <= 0 or last[1] < 0):
        time_index = None
    return offset_index, time_index


def _sane(index: StoredIndex) -> StoredIndex | None:
    return index if index.is_well_formed else None


def _rebuild_sealed(segment: Segment, config: LogConfig) -> None:
    position = 0
    for batch in scan_batches(segment.handle, 0):
        segment.observe(
            batch.position,
            batch.header,
            append_ms=segment.created_ms,
            index_interval_bytes=config.index_interval_bytes,
        )
        position = batch.end_position
    if position != segment.size_bytes:
        raise BrokerError(ErrorCode.KAFKA_STORAGE_ERROR, f"a sealed segment is damaged at byte {position}")
    segment.seal()


class _ActiveLoader:
    """Finds the end of the log in its last segment."""

    def __init__(self, files: Files, directory: str, base: int, config: LogConfig, epochs: EpochCache) -> None:
        self._files = files
        self._segment = _open_segment(files, directory, base)
        self._config = config
        self._epochs = epochs
        self.has_news_at_start = False
        """The first batch is of an epoch that the checkpoint does not know: it may lack others before."""

    def load(self, recovery_point: int | None) -> tuple[Segment, int]:
        segment = self._segment
        position = self._trusted_position(recovery_point) if recovery_point is not None else 0
        epoch = -1
        for batch in scan_batches(segment.handle, position, verify=True):
            header = batch.header
            if header.base_offset < segment.end_offset or header.partition_leader_epoch < epoch:
                break
            epoch = header.partition_leader_epoch
            is_news = self._epochs.assign(epoch, header.base_offset)
            self.has_news_at_start |= is_news and batch.position == 0
            segment.observe(
                batch.position,
                header,
                append_ms=segment.created_ms,
                index_interval_bytes=self._config.index_interval_bytes,
            )
            position = batch.end_position
        if recovery_point is not None and segment.end_offset < recovery_point:
            raise BrokerError(ErrorCode.KAFKA_STORAGE_ERROR, "a batch below the recovery point is damaged or missing")
        return segment, self._cut_at(position)

    def _trusted_position(self, recovery_point: int) -> int:
        """Take over index entries below the recovery point; the position of the last one."""
        segment = self._segment
        offset_index, time_index = _stored_indexes(segment, self._files)
        if offset_index is None or time_index is None:
            return 0
        offsets = GrowingIndex(OFFSET_ENTRY, offset_index.read_all())
        times = GrowingIndex(TIME_ENTRY, time_index.read_all())
        offset_index.close()
        time_index.close()
        offsets.drop_from(key=recovery_point - segment.base_offset)
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
        return last[1]

    def _cut_at(self, position: int) -> int:
        cut_bytes = self._segment.size_bytes - position
        if cut_bytes:
            self._segment.handle.truncate(position)
        return cut_bytes


def _rebuild_epochs(segments: list[Segment]) -> EpochCache:
    epochs = EpochCache()
    for segment in segments:
        for batch in scan_batches(segment.handle, 0):
            epochs.assign(batch.header.partition_leader_epoch, batch.header.base_offset)
    return epochs


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
    files.sync_dir(directory)
