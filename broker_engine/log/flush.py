"""A flush of one log: made on the loop, run in a thread, reported back on the loop. Or of many logs at once."""

from __future__ import annotations

import errno
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from broker_engine.log.file_seam import FileHandle, Files

_ASIDE_SUFFIX = ".tmp"
"""Recovery removes what a crash leaves of these."""
_NO_ROOM = (errno.ENOSPC, errno.EDQUOT)


@contextmanager
def unless_full() -> Iterator[None]:
    """Around writing a small file under another name: a full disk is no failing one, and the old file stays whole."""
    try:
        yield
    except OSError as error:
        if error.errno not in _NO_ROOM:
            raise


@dataclass(slots=True)
class FlushJob:
    """Covers everything below `end_offset`. `run` never raises: `PartitionLog.on_flushed` tells how it went."""

    files: Files
    end_offset: int
    handles: list[FileHandle]
    """Pinned when the job was made; `release` unpins them."""
    small_files: dict[str, bytes] = field(default_factory=dict)
    directories: list[str] = field(default_factory=list)
    written_small_files: list[str] = field(default_factory=list)
    error: OSError | None = None

    @property
    def has_written_all(self) -> bool:
        """False where the disk had no room for a small file: records are durable all the same."""
        return len(self.written_small_files) == len(self.small_files)

    def descriptors(self) -> list[int]:
        """Of the files to sync, where that is all there is to do; none where only `run` will do."""
        return [] if self.small_files or self.directories else [handle.fileno() for handle in self.handles]

    def note_error(self, error: OSError) -> None:
        """Of who synced the descriptors in place of `run`."""
        self.error = error

    def run(self) -> None:
        """Blocks for the disk. Touches nothing of the log but its own captured handles."""
        self.written_small_files.clear()
        with self._error_noted():
            for handle in self.handles:
                handle.sync()
            for path, data in self.small_files.items():
                with unless_full():
                    self.files.write_atomic(path, data, is_durable=True)
                    self.written_small_files.append(path)
            for directory in self.directories:
                self.files.sync_dir(directory)

    def write_aside(self) -> None:
        """Small files under another name: no crash may leave the name without the bytes."""
        with self._error_noted():
            for path, data in self.small_files.items():
                with unless_full():
                    self.files.write_atomic(path + _ASIDE_SUFFIX, data, is_durable=False)
                    self.written_small_files.append(path)

    def rename_aside(self) -> None:
        with self._error_noted():
            for path in self.written_small_files if self.error is None else ():
                self.files.rename(path + _ASIDE_SUFFIX, path)

    @contextmanager
    def _error_noted(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            self.error = error

    def release(self) -> None:
        for handle in self.handles:
            handle.unpin()
        self.handles = []


def run_together(files: Files, jobs: Sequence[FlushJob]) -> OSError | None:
    """All of them by a sync of the whole file system. Where that fails it says why, and each has been run by itself."""
    try:
        _sync_together(files, jobs)
    except OSError as error:
        for job in jobs:
            job.run()
        return error
    return None


def _sync_together(files: Files, jobs: Sequence[FlushJob]) -> None:
    for job in jobs:
        job.write_aside()
    files.sync_all()
    for job in jobs:
        job.rename_aside()
    if any(job.small_files for job in jobs):
        files.sync_all()
