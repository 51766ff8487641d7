"""A recording disk: passes every call on to real files and keeps what changed them, in order, for a replay.

Starts on an empty directory. Safe with several threads. A sync is recorded when it is done, for what had been written
when it began: what others wrote meanwhile is not counted as safe.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from broker_engine.log.file_seam import FileHandle, Files, Part
from broker_engine.simulator.sim_disk import SimDisk, SimFile

_TEMPORARY_SUFFIX = ".tmp"


class Created(NamedTuple):
    file: int
    path: str


class Appended(NamedTuple):
    file: int
    data: bytes


class Truncated(NamedTuple):
    file: int
    size_bytes: int


class Synced(NamedTuple):
    file: int
    operation_count: int
    """So many appends and truncations of this file were covered."""


class Renamed(NamedTuple):
    old: str
    new: str


class Unlinked(NamedTuple):
    path: str


class DirectoriesMade(NamedTuple):
    path: str


class DirectoryRemoved(NamedTuple):
    path: str


class DirectorySynced(NamedTuple):
    path: str


Operation = (
    Created | Appended | Truncated | Synced | Renamed | Unlinked | DirectoriesMade | DirectoryRemoved | DirectorySynced
)


@dataclass(slots=True)
class _Known:
    file: int
    operation_count: int = 0


class RecordingFile:
    """See FileHandle."""

    def __init__(self, files: RecordingFiles, handle: FileHandle, known: _Known) -> None:
        self._files = files
        self._handle = handle
        self._known = known

    @property
    def size_bytes(self) -> int:
        return self._handle.size_bytes

    def append(self, parts: Sequence[Part]) -> int:
        with self._files.lock:
            written = self._handle.append(parts)
            if written:
                self._files.note_change(self._known, Appended(self._known.file, b"".join(parts)[:written]))
            return written

    def pread(self, size_bytes: int, position: int) -> bytes:
        return self._handle.pread(size_bytes, position)

    def is_cached(self, position: int, size_bytes: int) -> bool:
        return self._handle.is_cached(position, size_bytes)

    def forget_cached(self, position: int) -> None:
        self._handle.forget_cached(position)

    def truncate(self, size_bytes: int) -> None:
        with self._files.lock:
            self._handle.truncate(size_bytes)
            self._files.note_change(self._known, Truncated(self._known.file, size_bytes))

    def sync(self) -> None:
        operation_count = self._known.operation_count
        self._handle.sync()
        with self._files.lock:
            self._files.operations.append(Synced(self._known.file, operation_count))

    def pin(self) -> None:
        self._handle.pin()

    def unpin(self) -> None:
        self._handle.unpin()

    def fileno(self) -> int:
        return self._handle.fileno()

    def close(self) -> None:
        self._handle.close()


class RecordingFiles:
    """See Files."""

    def __init__(self, files: Files) -> None:
        assert not files.list_dir(""), "a recording starts on an empty directory"
        self.operations: list[Operation] = []
        self.lock = threading.RLock()
        self._files = files
        self._known: dict[str, _Known] = {}
        self._file_count = 0

    def note_change(self, known: _Known, operation: Appended | Truncated) -> None:
        known.operation_count += 1
        self.operations.append(operation)

    def open(self, path: str, *, create: bool = False) -> FileHandle:
        with self.lock:
            handle = self._files.open(path, create=create)
            return RecordingFile(self, handle, self._known.get(path) or self._create(path))

    def _create(self, path: str) -> _Known:
        known = self._known[path] = _Known(self._file_count)
        self._file_count += 1
        self.operations.append(Created(known.file, path))
        return known

    def exists(self, path: str) -> bool:
        return self._files.exists(path)

    def list_dir(self, path: str) -> list[str]:
        return self._files.list_dir(path)

    def make_dirs(self, path: str) -> None:
        with self.lock:
            is_new = not self._files.exists(path)
            self._files.make_dirs(path)
            if is_new:
                self.operations.append(DirectoriesMade(path))

    def rename(self, old: str, new: str) -> None:
        with self.lock:
            self._files.rename(old, new)
            self._note_rename(old, new)

    def _note_rename(self, old: str, new: str) -> None:
        inside = old + "/"
        moved = [path for path in self._known if path == old or path.startswith(inside)]
        for path in moved:
            self._known[new + path[len(old) :]] = self._known.pop(path)
        self.operations.append(Renamed(old, new))

    def unlink(self, path: str) -> None:
        with self.lock:
            self._files.unlink(path)
            del self._known[path]
            self.operations.append(Unlinked(path))

    def remove_dir(self, path: str) -> None:
        with self.lock:
            self._files.remove_dir(path)
            self.operations.append(DirectoryRemoved(path))

    def sync_dir(self, path: str) -> None:
        # Held while it lasts: a change of names in between would be taken for a safe one.
        with self.lock:
            self._files.sync_dir(path)
            self.operations.append(DirectorySynced(path))

    def sync_all(self) -> None:
        """Recorded as a sync of each file and directory. Held while it lasts, for the same reason."""
        with self.lock:
            self._files.sync_all()
            self.operations += [Synced(known.file, known.operation_count) for known in self._known.values()]
            self.operations += [DirectorySynced(path) for path in self._directories("")]

    def _directories(self, path: str) -> Iterator[str]:
        yield path
        for name in self._files.list_dir(path):
            inner = f"{path}/{name}".lstrip("/")
            if inner not in self._known:
                yield from self._directories(inner)

    def sync_ring(self, worker_count: int) -> None:
        """No descriptors, no kernel."""

    def owns_file_system(self) -> bool:
        return self._files.owns_file_system()

    def modified_ms(self, path: str) -> int:
        return self._files.modified_ms(path)

    def read_small(self, path: str) -> bytes:
        return self._files.read_small(path)

    def write_atomic(self, path: str, data: bytes, *, is_durable: bool) -> None:
        """Recorded in the steps of DiskFiles, so that a crash may come between them."""
        temporary = path + _TEMPORARY_SUFFIX
        with self.lock:
            self._files.write_atomic(path, data, is_durable=is_durable)
            known = self._create(temporary)
            if data:
                self.note_change(known, Appended(known.file, data))
            if is_durable:
                self.operations.append(Synced(known.file, known.operation_count))
            self._note_rename(temporary, path)
            if is_durable:
                self.operations.append(DirectorySynced(path.rpartition("/")[0]))


class Replay:
    """Carries out recorded operations on a SimDisk, one by one, or a write only up to one of its bytes."""

    def __init__(self, disk: SimDisk) -> None:
        self.disk = disk
        self._handles: dict[int, SimFile] = {}

    def perform(self, operation: Operation) -> None:
        disk = self.disk
        match operation:
            case Created(file, path):
                self._handles[file] = disk.open(path, create=True)
            case Appended(file, data):
                self._handles[file].append([data])
            case Truncated(file, size_bytes):
                self._handles[file].truncate(size_bytes)
            case Synced(file, operation_count):
                self._handles[file].sync(operation_count)
            case Renamed(old, new):
                disk.rename(old, new)
            case Unlinked(path):
                disk.unlink(path)
            case DirectoriesMade(path):
                disk.make_dirs(path)
            case DirectoryRemoved(path):
                disk.remove_dir(path)
            case DirectorySynced(path):
                disk.sync_dir(path)

    def handle_of(self, operation: Appended) -> SimFile:
        return self._handles[operation.file]
