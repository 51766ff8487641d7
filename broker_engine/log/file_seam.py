"""The engine's only file interface: DiskFiles in production, MemoryFiles in tests, the simulator's disk later.

Paths are text with `/`, relative to the implementation's root. Methods raise OSError; the log turns it into answers.
A handle belongs to one thread at a time; a pinned handle may be read and synced by another.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from broker_engine.log.sync_ring import SyncRing

Part = bytes | memoryview


class Readable(Protocol):
    """As much of a file as walking over its batches needs."""

    @property
    def size_bytes(self) -> int: ...

    def pread(self, size_bytes: int, position: int) -> bytes: ...


class FileHandle(Readable, Protocol):
    """One file, open in the eyes of its owner, whether or not a descriptor is held at the moment."""

    def append(self, parts: Sequence[Part]) -> int:
        """Write at the end with one system call. Answers the bytes written, which may be fewer than given."""
        ...

    def is_cached(self, position: int, size_bytes: int) -> bool:
        """False if reading the first or the last page of the range would wait for the disk."""
        ...

    def forget_cached(self, position: int) -> None:
        """From here on the next read shows what the disk holds, where the cache thinks that it has been written."""
        ...

    def truncate(self, size_bytes: int) -> None: ...

    def sync(self) -> None:
        """Data on the disk when it returns. After an error never call it again: the kernel forgets what it lost."""
        ...

    def pin(self) -> None:
        """Keep the descriptor open until as many calls of `unpin`, whatever happens to the file."""
        ...

    def unpin(self) -> None: ...

    def fileno(self) -> int:
        """For sendfile. Only while pinned; io.UnsupportedOperation where there is no descriptor."""
        ...

    def close(self) -> None:
        """The owner is done: the descriptor goes when the last pin does."""
        ...


class Files(Protocol):
    def open(self, path: str, *, create: bool = False) -> FileHandle: ...

    def exists(self, path: str) -> bool: ...

    def list_dir(self, path: str) -> list[str]:
        """Names in the directory, sorted."""
        ...

    def make_dirs(self, path: str) -> None: ...

    def rename(self, old: str, new: str) -> None: ...

    def unlink(self, path: str) -> None: ...

    def remove_dir(self, path: str) -> None:
        """An empty directory."""
        ...

    def sync_dir(self, path: str) -> None:
        """Makes creations, renames and removals in this directory durable."""
        ...

    def sync_all(self) -> None:
        """Everything that was done so far is durable: data, names, directories. After an error it says nothing about
        any one file: ask each by its own `sync`, which tells it once more."""
        ...

    def sync_ring(self, worker_count: int) -> SyncRing | None:
        """To sync descriptors without a thread, so many at a time. None where there is no way to, or no descriptors."""
        ...

    def owns_file_system(self) -> bool:
        """Whether `sync_all` writes nothing of others, and may be relied on. Ask before the first write."""
        ...

    def modified_ms(self, path: str) -> int: ...

    def read_small(self, path: str) -> bytes: ...

    def write_atomic(self, path: str, data: bytes, *, is_durable: bool) -> None:
        """Old content or new content, never a mixture. With `is_durable` also after a power failure."""
        ...


@dataclass(slots=True)
class FileRange:
    """Bytes of a file on their way to a socket. Holds one pin: `release` exactly once, after they were sent."""

    handle: FileHandle
    position: int
    size_bytes: int
    is_released: bool = False

    @classmethod
    def pinned(cls, handle: FileHandle, position: int, size_bytes: int) -> FileRange:
        handle.pin()
        return cls(handle, position, size_bytes)

    def read(self) -> bytes:
        return self.handle.pread(self.size_bytes, self.position)

    def is_cached(self) -> bool:
        return self.handle.is_cached(self.position, self.size_bytes)

    def release(self) -> None:
        assert not self.is_released, "a file range is released once"
        self.is_released = True
        self.handle.unpin()
