"""Files in memory that fail and crash on command, with the strictest reading of what a disk promises.

A crash keeps only bytes that were synced, in files whose directory was synced since they were made or renamed. After a
failed sync the lost bytes never become durable, however often it is called again: that is what Linux does.
"""

from __future__ import annotations

import errno
import io
from collections.abc import Callable, Sequence

from broker_engine.log.file_seam import FileHandle, Part


class _Inode:
    __slots__ = ("data", "durable", "has_lost_bytes", "modified_ms")

    def __init__(self) -> None:
        self.data = bytearray()
        self.durable = b""
        self.has_lost_bytes = False
        self.modified_ms = 0


class MemoryFile:
    """See FileHandle."""

    def __init__(self, files: MemoryFiles, inode: _Inode) -> None:
        self._files = files
        self._inode = inode
        self.pin_count = 0
        self.is_closing = False

    @property
    def size_bytes(self) -> int:
        return len(self._inode.data)

    def append(self, parts: Sequence[Part]) -> int:
        self._check_open()
        data = b"".join(parts)
        room = self._files.take_room(len(data))
        self._inode.data += data[:room]
        self._inode.modified_ms = self._files.now_ms()
        return room

    def pread(self, size_bytes: int, position: int) -> bytes:
        self._check_open()
        return bytes(self._inode.data[position : position + size_bytes])

    def is_cached(self, position: int, size_bytes: int) -> bool:
        return True

    def forget_cached(self, position: int) -> None:
        self._check_open()

    def truncate(self, size_bytes: int) -> None:
        self._check_open()
        if self._files.fail_next_truncate:
            self._files.fail_next_truncate = False
            raise OSError(errno.EIO, "truncate failed on command")
        del self._inode.data[size_bytes:]

    def sync(self) -> None:
        self._check_open()
        self._files.sync_count += 1
        if self._files.fail_next_sync:
            self._files.fail_next_sync = False
            self._inode.has_lost_bytes = True
            raise OSError(errno.EIO, "sync failed on command")
        if not self._inode.has_lost_bytes:
            self._inode.durable = bytes(self._inode.data)

    def pin(self) -> None:
        self._check_open()
        self.pin_count += 1

    def unpin(self) -> None:
        assert self.pin_count > 0, "unpinned more often than pinned"
        self.pin_count -= 1

    def fileno(self) -> int:
        raise io.UnsupportedOperation("a file in memory has no descriptor")

    def close(self) -> None:
        self.is_closing = True

    def _check_open(self) -> None:
        if self.is_closing and not self.pin_count:
            raise OSError(errno.EBADF, "the file is closed")


class MemoryFiles:
    """See Files. Switches: `fail_next_sync` (`_sync_all`, `_truncate`), `free_bytes` (None = no end), `no_space`."""

    def __init__(self, *, now_ms: Callable[[], int] = lambda: 0) -> None:
        self.now_ms = now_ms
        self.fail_next_sync = False
        self.fail_next_sync_all = False
        self.fail_next_truncate = False
        self.free_bytes: int | None = None
        self.sync_count = 0
        self.sync_all_count = 0
        self._files: dict[str, _Inode] = {}
        self._durable_files: dict[str, _Inode] = {}
        self._dirs: set[str] = {""}
        self._durable_dirs: set[str] = {""}

    @property
    def no_space(self) -> bool:
        return self.free_bytes == 0

    @no_space.setter
    def no_space(self, is_full: bool) -> None:
        self.free_bytes = 0 if is_full else None

    def take_room(self, wanted_bytes: int) -> int:
        """As many of the wanted bytes as there is room for; ENOSPC if for none."""
        if self.free_bytes is None:
            return wanted_bytes
        if self.free_bytes == 0 and wanted_bytes:
            raise OSError(errno.ENOSPC, "no space left on command")
        room = min(self.free_bytes, wanted_bytes)
        self.free_bytes -= room
        return room

    def crash(self, *, kept_unsynced_bytes: int = 0) -> None:
        """Power failure: unsynced bytes and names are gone, but for so many bytes of each file's unsynced tail."""
        self._files = dict(self._durable_files)
        self._dirs = set(self._durable_dirs)
        for inode in self._files.values():
            kept = len(inode.durable) + kept_unsynced_bytes
            is_grown = bytes(inode.data[: len(inode.durable)]) == inode.durable
            inode.data = bytearray(inode.data[:kept] if is_grown else inode.durable)
            inode.has_lost_bytes = False

    def open(self, path: str, *, create: bool = False) -> FileHandle:
        if path not in self._files:
            if not create or _parent(path) not in self._dirs:
                raise FileNotFoundError(errno.ENOENT, "no such file", path)
            self._files[path] = _Inode()
            self._files[path].modified_ms = self.now_ms()
        return MemoryFile(self, self._files[path])

    def exists(self, path: str) -> bool:
        return path in self._files or path in self._dirs

    def list_dir(self, path: str) -> list[str]:
        if path not in self._dirs:
            raise FileNotFoundError(errno.ENOENT, "no such directory", path)
        return sorted(name.rsplit("/", 1)[-1] for name in (*self._files, *self._dirs - {""}) if _parent(name) == path)

    def make_dirs(self, path: str) -> None:
        while path:
            self._dirs.add(path)
            path = _parent(path)

    def rename(self, old: str, new: str) -> None:
        if old in self._files:
            self._files[new] = self._files.pop(old)
            return
        if old not in self._dirs:
            raise FileNotFoundError(errno.ENOENT, "no such file", old)
        inside = old + "/"
        self._files = {new + p[len(old) :] if p.startswith(inside) else p: node for p, node in self._files.items()}
        self._dirs = {new + p[len(old) :] if p == old or p.startswith(inside) else p for p in self._dirs}

    def unlink(self, path: str) -> None:
        if self._files.pop(path, None) is None:
            raise FileNotFoundError(errno.ENOENT, "no such file", path)

    def remove_dir(self, path: str) -> None:
        if self.list_dir(path):
            raise OSError(errno.ENOTEMPTY, "directory not empty", path)
        self._dirs.discard(path)

    def sync_dir(self, path: str) -> None:
        kept = {name: inode for name, inode in self._durable_files.items() if _parent(name) != path}
        self._durable_files = kept | {name: inode for name, inode in self._files.items() if _parent(name) == path}
        outside = {name for name in self._durable_dirs if not name or _parent(name) != path}
        self._durable_dirs = outside | {name for name in self._dirs if name and _parent(name) == path}

    def sync_all(self) -> None:
        self.sync_all_count += 1
        if self.fail_next_sync_all:
            self.fail_next_sync_all = False
            raise OSError(errno.EIO, "sync of everything failed on command")
        for inode in self._files.values():
            if not inode.has_lost_bytes:
                inode.durable = bytes(inode.data)
        self._durable_files, self._durable_dirs = dict(self._files), set(self._dirs)

    def sync_ring(self, worker_count: int) -> None:
        """No descriptors, no kernel."""

    def owns_file_system(self) -> bool:
        return True

    def modified_ms(self, path: str) -> int:
        return self._files[path].modified_ms

    def read_small(self, path: str) -> bytes:
        if path not in self._files:
            raise FileNotFoundError(errno.ENOENT, "no such file", path)
        return bytes(self._files[path].data)

    def write_atomic(self, path: str, data: bytes, *, is_durable: bool) -> None:
        if self.take_room(len(data)) < len(data):
            raise OSError(errno.ENOSPC, "no space left on command")
        inode = _Inode()
        inode.data += data
        inode.modified_ms = self.now_ms()
        self._files[path] = inode
        if is_durable:
            inode.durable = data
            self.sync_dir(_parent(path))


def _parent(path: str) -> str:
    return path.rsplit("/", 1)[0] if "/" in path else ""
