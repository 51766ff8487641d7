"""The producer snapshot files of one log: `NNN.snapshot` holds what producers did below offset NNN.

Their bytes are the owner's; here they are written, found and removed. They are caches: a lost one costs a longer
replay of the log's batches. Only what retention or compaction has removed is known from a snapshot alone.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable, Iterator

from broker_engine.log.file_seam import Files
from broker_engine.log.segment import SNAPSHOT_SUFFIX, segment_path

log = logging.getLogger(__name__)

_DIGITS = 20


def snapshot_offsets(names: Iterable[str]) -> list[int]:
    """Of those among the names of files, in order."""
    stems = (name.removesuffix(SNAPSHOT_SUFFIX) for name in names if name.endswith(SNAPSHOT_SUFFIX))
    return sorted(int(stem) for stem in stems if len(stem) == _DIGITS and stem.isdecimal())


class SnapshotFiles:
    def __init__(self, files: Files, directory: str) -> None:
        self._files = files
        self._directory = directory

    def write(self, offset: int, data: bytes) -> None:
        """Not synced: a torn one does not parse. A full disk costs the snapshot only."""
        try:
            self._files.write_atomic(self._path(offset), data, is_durable=False)
        except OSError as error:
            log.warning("no producer snapshot at offset %d: %s", offset, error.strerror)

    def newest_first(self) -> Iterator[tuple[int, bytes]]:
        for offset in reversed(self.offsets()):
            yield offset, self._files.read_small(self._path(offset))

    def offsets(self) -> list[int]:
        return snapshot_offsets(self._files.list_dir(self._directory))

    def remove_above(self, end_offset: int) -> bool:
        """They speak of batches that are gone. True if there were any: the removal must be durable before appends."""
        removed = [offset for offset in self.offsets() if offset > end_offset]
        for offset in removed:
            self._files.unlink(self._path(offset))
        return bool(removed)

    def remove_useless(self, end_offset: int, segment_bases: Collection[int]) -> bool:
        """Those above the end; and strays: kept is the newest one, and those that a segment begins with, which a
        truncation may make the newest. True if any was above the end.
        """
        offsets = self.offsets()
        useful = [offset for offset in offsets if offset <= end_offset]
        kept = {*useful[-1:], *segment_bases}
        for offset in offsets:
            if offset > end_offset or offset not in kept:
                self._files.unlink(self._path(offset))
        return len(useful) < len(offsets)

    def _path(self, offset: int) -> str:
        return segment_path(self._directory, offset, SNAPSHOT_SUFFIX)
