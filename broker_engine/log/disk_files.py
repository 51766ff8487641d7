"""Real files. Holds at most `open_files_max` descriptors: the least used ones are closed and opened again on demand.

Pinned descriptors are never closed, so the bound may be exceeded while more than that many are pinned.
"""

# ruff: noqa: PTH103, PTH105, PTH106, PTH108, PTH110, PTH112, PTH116, PTH123
# Thousands of partitions are opened at once, and pathlib would take a third of that time.

from __future__ import annotations

import errno
import os
import threading
import weakref
from collections import OrderedDict
from collections.abc import Sequence
from contextlib import suppress
from itertools import count, islice
from pathlib import Path

from broker_engine.log import syncfs
from broker_engine.log.file_seam import FileHandle, Part
from broker_engine.log.sync_ring import SyncRing, open_sync_ring

OPEN_FILES_MAX_DEFAULT = 8_000
_CLOSED = -1
_PAGE_BYTES = 4096
_EVICTION_SEARCH_MAX = 64
"""How many pinned files to pass over, so that a crowd of them costs no more than that."""
_FILE_MODE = 0o640


class DiskFile:
    """See FileHandle. The lock of its DiskFiles guards descriptor and pins, so that no thread loses one to the LRU."""

    __slots__ = ("_descriptor", "_files", "_is_closing", "_path", "_pin_count", "_size_bytes")

    def __init__(self, files: DiskFiles, path: str, descriptor: int) -> None:
        self._files = files
        self._path = path
        self._descriptor = descriptor
        self._pin_count = 0
        self._is_closing = False
        self._size_bytes = os.fstat(descriptor).st_size

    @property
    def size_bytes(self) -> int:
        return self._size_bytes

    def append(self, parts: Sequence[Part]) -> int:
        descriptor = self._acquire()
        try:
            written = os.writev(descriptor, parts)
            self._size_bytes += written
            return written
        finally:
            self.unpin()

    def pread(self, size_bytes: int, position: int) -> bytes:
        descriptor = self._acquire()
        try:
            return os.pread(descriptor, size_bytes, position)
        finally:
            self.unpin()

    def is_cached(self, position: int, size_bytes: int) -> bool:
        descriptor = self._acquire()
        try:
            last = max(position, position + size_bytes - _PAGE_BYTES)
            return _is_page_cached(descriptor, position) and _is_page_cached(descriptor, last)
        finally:
            self.unpin()

    def forget_cached(self, position: int) -> None:
        descriptor = self._acquire()
        try:
            os.posix_fadvise(descriptor, position, 0, os.POSIX_FADV_DONTNEED)  # pages that are still dirty stay
        finally:
            self.unpin()

    def truncate(self, size_bytes: int) -> None:
        descriptor = self._acquire()
        try:
            os.ftruncate(descriptor, size_bytes)
            self._size_bytes = size_bytes
        finally:
            self.unpin()

    def sync(self) -> None:
        descriptor = self._acquire()
        try:
            os.fdatasync(descriptor)
        finally:
            self.unpin()

    def pin(self) -> None:
        self._acquire()

    def unpin(self) -> None:
        with self._files.lock:
            assert self._pin_count > 0, "unpinned more often than pinned"
            self._pin_count -= 1
            if self._pin_count == 0:
                if self._is_closing:
                    self._close_descriptor()
                else:
                    self._files.trim(keep=None)

    def fileno(self) -> int:
        assert self._pin_count > 0, "a descriptor is lent to holders of a pin only"
        return self._descriptor

    def close(self) -> None:
        with self._files.lock:
            self._is_closing = True
            if self._pin_count == 0:
                self._close_descriptor()

    def _acquire(self) -> int:
        files = self._files
        with files.lock:
            if self._descriptor == _CLOSED:
                if self._is_closing:
                    raise OSError(errno.EBADF, "the file is closed")
                self._descriptor = os.open(self._path, os.O_RDWR | os.O_APPEND | os.O_CLOEXEC)
                files.admit(self)
            else:
                files.touch(self)
            self._pin_count += 1
            return self._descriptor

    def evict(self) -> bool:
        """Called by the LRU, under its lock. False if pinned."""
        if self._pin_count:
            return False
        self._close_descriptor()
        return True

    def _close_descriptor(self) -> None:
        if self._descriptor != _CLOSED:
            self._files.forget(self)
            os.close(self._descriptor)
            self._descriptor = _CLOSED


def _is_page_cached(descriptor: int, position: int) -> bool:
    try:
        os.preadv(descriptor, [bytearray(1)], position, os.RWF_NOWAIT)
    except BlockingIOError:
        return False
    except OSError as error:
        if error.errno != errno.EOPNOTSUPP:
            raise
        # A file system that cannot tell (overlays, network): treat as cached rather than send all from threads.
    return True


class DiskFiles:
    """See Files. Safe to use from several threads."""

    def __init__(self, root: str | Path = "", *, open_files_max: int = OPEN_FILES_MAX_DEFAULT) -> None:
        self._root = os.fspath(root) or "."
        self._open_files_max = open_files_max
        self._open: OrderedDict[DiskFile, None] = OrderedDict()
        self._whole_descriptor = _CLOSED
        self._temporary_numbers = count()
        self.lock = threading.RLock()

    @property
    def open_count(self) -> int:
        return len(self._open)

    def open(self, path: str, *, create: bool = False) -> FileHandle:
        full = self._full(path)
        flags = os.O_RDWR | os.O_APPEND | os.O_CLOEXEC | (os.O_CREAT if create else 0)
        file = DiskFile(self, full, os.open(full, flags, _FILE_MODE))
        with self.lock:  # not while the file is made: that takes its time, and threads make many at once
            self.admit(file)
        return file

    def _full(self, path: str) -> str:
        return path if path.startswith("/") else f"{self._root}/{path}"

    def admit(self, file: DiskFile) -> None:
        """Under the lock: a descriptor was opened."""
        self._open[file] = None
        self.trim(keep=file)

    def trim(self, *, keep: DiskFile | None) -> None:
        """Under the lock: close the least used descriptors, but pinned ones, until the bound holds."""
        surplus = len(self._open) - self._open_files_max
        if surplus <= 0:
            return
        for candidate in list(islice(self._open, surplus + _EVICTION_SEARCH_MAX)):
            if surplus and candidate is not keep and candidate.evict():
                surplus -= 1

    def touch(self, file: DiskFile) -> None:
        self._open.move_to_end(file)

    def forget(self, file: DiskFile) -> None:
        self._open.pop(file, None)

    def exists(self, path: str) -> bool:
        return os.path.exists(self._full(path))

    def list_dir(self, path: str) -> list[str]:
        return sorted(entry.name for entry in os.scandir(self._full(path)))

    def make_dirs(self, path: str) -> None:
        full = self._full(path)
        if not os.path.isdir(full):  # makedirs asks the system four times about one that is there
            os.makedirs(full, exist_ok=True)

    def rename(self, old: str, new: str) -> None:
        os.replace(self._full(old), self._full(new))

    def unlink(self, path: str) -> None:
        os.unlink(self._full(path))

    def remove_dir(self, path: str) -> None:
        os.rmdir(self._full(path))

    def sync_dir(self, path: str) -> None:
        descriptor = os.open(self._full(path), os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

    def sync_all(self) -> None:
        syncfs.syncfs(self._whole())

    def sync_ring(self, worker_count: int) -> SyncRing | None:
        return open_sync_ring(worker_count)

    def owns_file_system(self) -> bool:
        self._whole()  # it is told of errors from now on
        return syncfs.has_to_itself(Path(self._root))

    def _whole(self) -> int:
        """One descriptor for all time: another one would not be told what went wrong before it was opened."""
        if self._whole_descriptor == _CLOSED:
            self._whole_descriptor = os.open(self._root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            weakref.finalize(self, os.close, self._whole_descriptor)
        return self._whole_descriptor

    def modified_ms(self, path: str) -> int:
        return os.stat(self._full(path)).st_mtime_ns // 1_000_000

    def read_small(self, path: str) -> bytes:
        descriptor = os.open(self._full(path), os.O_RDONLY | os.O_CLOEXEC)  # a start reads tens of thousands of these
        try:
            return os.read(descriptor, os.fstat(descriptor).st_size)
        finally:
            os.close(descriptor)

    def write_atomic(self, path: str, data: bytes, *, is_durable: bool) -> None:
        target = self._full(path)
        # A flush thread and the loop may write the same file at once: each needs a temporary one of its own.
        temporary = f"{target}.{next(self._temporary_numbers)}.tmp"
        try:
            with open(temporary, "wb") as stream:
                stream.write(data)
                if is_durable:
                    stream.flush()
                    os.fsync(stream.fileno())
            os.replace(temporary, target)
        except OSError:
            with suppress(OSError):  # the first error is the one to tell
                os.unlink(temporary)
            raise
        if is_durable:
            self.sync_dir(path.rpartition("/")[0])
