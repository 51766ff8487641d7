"""SimDisk: the engine's file interface on a disk that crashes, fails, fills up and rots, all by one seed.

`kill` ends the process: what it wrote stays, its handles are dead. `lose_power` also takes what was not synced, as far
as `Survival` says. `killed` and `image` answer a second disk, as the next process would find it, and leave this one be.

Why beside MemoryFiles: that one knows a file's synced and its present bytes, nothing of the steps between, which is
all that unit tests of the log need; here the ordered steps are the point, of files and of names.
"""

from __future__ import annotations

import errno
import io
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from random import Random

from broker_engine.log.file_seam import Part
from broker_engine.simulator.disk_faults import DiskCall, DiskFaults
from broker_engine.simulator.sim_inode import Inode
from broker_engine.simulator.sim_names import Directory, Edit, Names, Node
from broker_engine.simulator.survival import KeepRandom, Survival

_TEMPORARY_SUFFIX = ".tmp"


class SimFile:
    """See FileHandle. Dead after a crash of its process."""

    __slots__ = ("_disk", "_generation", "_is_closing", "inode", "path", "pin_count")

    def __init__(self, disk: SimDisk, inode: Inode, path: str) -> None:
        self.inode = inode
        self.path = path
        """At the time it was opened."""
        self.pin_count = 0
        self._disk = disk
        self._generation = disk.generation
        self._is_closing = False

    @property
    def size_bytes(self) -> int:
        return len(self.inode.data)

    def append(self, parts: Sequence[Part]) -> int:
        self._enter(DiskCall.APPEND)
        data = b"".join(parts)
        written = self._disk.faults.writable_bytes(len(data), self._disk.used_bytes(), self.path)
        if written:
            self.inode.append(data[:written], self._disk.now_ms())
        return written

    def pread(self, size_bytes: int, position: int) -> bytes:
        self._enter(DiskCall.READ)
        position = self._disk.faults.read_position(position, len(self.inode.data))
        return bytes(self.inode.data[position : position + size_bytes])

    def is_cached(self, position: int, size_bytes: int) -> bool:
        return True

    def forget_cached(self, position: int) -> None:
        self._check_open()
        self.inode.forget_clean()

    def truncate(self, size_bytes: int) -> None:
        self._enter(DiskCall.TRUNCATE)
        self.inode.cut(size_bytes, self._disk.now_ms())

    def sync(self, operation_count: int | None = None) -> None:
        """`operation_count`: only what had been done when the sync began, where others went on meanwhile."""
        self._check_open()
        self._disk.sync_count += 1
        try:
            self._disk.faults.before(DiskCall.SYNC, self.path)
            self.inode.tell_loss(self.path)
        except OSError:
            self.inode.lose_pending()  # a second sync will succeed, and mean nothing
            raise
        self.inode.sync(operation_count)

    def pin(self) -> None:
        self._check_open()
        self.pin_count += 1

    def unpin(self) -> None:
        assert self.pin_count > 0, "unpinned more often than pinned"
        self.pin_count -= 1

    def fileno(self) -> int:
        raise io.UnsupportedOperation("a simulated file has no descriptor")

    def close(self) -> None:
        self._is_closing = True

    def _enter(self, call: DiskCall) -> None:
        self._check_open()
        self._disk.faults.before(call, self.path)

    def _check_open(self) -> None:
        if self._generation != self._disk.generation:
            raise OSError(errno.EBADF, "the process that had this file open is dead", self.path)
        if self._is_closing and not self.pin_count:
            raise OSError(errno.EBADF, "the file is closed", self.path)


class SimDisk:
    """See Files."""

    def __init__(self, seed: int | str = 0, *, now_ms: Callable[[], int] = lambda: 0) -> None:
        self.now_ms = now_ms
        self.random = Random(seed)  # noqa: S311 (it decides what breaks, nothing secret)
        self.faults = DiskFaults(self.random)
        self.generation = 0
        self.sync_count = 0
        self.locked_by: int | None = None
        """The generation that holds the directory's lock."""
        self.sync_all_count = 0
        self.names = Names()

    # --- crashes and rot

    def kill(self) -> None:
        """The process dies; the machine goes on and will write what is pending, unless it loses power first."""
        self.generation += 1

    def lose_power(self, survival: Survival | None = None) -> None:
        self.kill()
        self.names = Names(self._after(survival or KeepRandom(self.random)))

    def image(self, survival: Survival) -> SimDisk:
        """As the disk would be found if power failed now."""
        found = SimDisk(now_ms=self.now_ms)
        found.names = Names(self._after(survival))
        return found

    def killed(self) -> SimDisk:
        """As the next process would find it if this one died now, with everything still pending that is."""
        found = SimDisk(now_ms=self.now_ms)
        found.names = self.names.copy()
        return found

    def _after(self, survival: Survival) -> Directory:
        root = self.names.after_loss(survival.names_of(self.names.pending))
        for directory in _directories(root):
            for name, node in directory.entries.items():
                if isinstance(node, Inode):
                    content = survival.content_of(node)
                    directory.entries[name] = directory.durable[name] = Inode(content, modified_ms=node.modified_ms)
        return root

    def flip_bit(self, path: str, position: int | None = None, bit: int | None = None) -> int:
        """Rot in a stored byte, a random one if none is named. Answers its position."""
        inode = self._inode(path)
        at = self.random.randrange(len(inode.data)) if position is None else position
        inode.flip_bit(at, self.random.randrange(8) if bit is None else bit)
        return at

    def used_bytes(self) -> Iterator[int]:
        yield from (len(inode.data) for inode in self._inodes())

    # --- Files

    def open(self, path: str, *, create: bool = False) -> SimFile:
        self.faults.before(DiskCall.OPEN, path)
        node = self.names.find(path)
        if node is None and create:
            directory, name = self._parent(path)
            node = Inode(modified_ms=self.now_ms())
            self.names.change(Edit(directory, name, node))
        return SimFile(self, self._inode(path), path)

    def exists(self, path: str) -> bool:
        return self.names.find(path) is not None

    def list_dir(self, path: str) -> list[str]:
        return sorted(self._directory(path).entries)

    def make_dirs(self, path: str) -> None:
        if self.exists(path):
            return
        self.faults.before(DiskCall.MAKE_DIR, path)
        self.make_dirs(path.rpartition("/")[0])
        directory, name = self._parent(path)
        self.names.change(Edit(directory, name, Directory()))

    def rename(self, old: str, new: str) -> None:
        self.faults.before(DiskCall.RENAME, old)
        node = self._node(old)
        old_directory, old_name = self._parent(old)
        new_directory, new_name = self._parent(new)
        self.names.change(Edit(old_directory, old_name, None), Edit(new_directory, new_name, node))

    def unlink(self, path: str) -> None:
        self.faults.before(DiskCall.UNLINK, path)
        self._inode(path)
        directory, name = self._parent(path)
        self.names.change(Edit(directory, name, None))

    def remove_dir(self, path: str) -> None:
        self.faults.before(DiskCall.REMOVE_DIR, path)
        if self._directory(path).entries:
            raise OSError(errno.ENOTEMPTY, os.strerror(errno.ENOTEMPTY), path)
        directory, name = self._parent(path)
        self.names.change(Edit(directory, name, None))

    def sync_dir(self, path: str) -> None:
        self.faults.before(DiskCall.SYNC_DIR, path)
        self.names.sync(self._directory(path))

    def sync_all(self) -> None:
        """Where it fails, some of the files that it was to write are the ones that lost something; each tells once."""
        self.sync_all_count += 1
        unsafe = [inode for inode in self._inodes() if inode.pending]
        try:
            self.faults.before(DiskCall.SYNC_ALL, "")
        except OSError:
            for inode in self.random.sample(unsafe, k=min(len(unsafe), self.random.randint(0, 2))):
                inode.lose_pending()
                inode.has_untold_loss = True
            raise
        for inode in unsafe:
            inode.sync()
        self.names.sync_all()

    def sync_ring(self, worker_count: int) -> None:
        """No descriptors, no kernel."""

    def owns_file_system(self) -> bool:
        return True

    def _inodes(self) -> Iterator[Inode]:
        for directory in _directories(self.names.root):
            yield from (node for node in directory.entries.values() if isinstance(node, Inode))

    def modified_ms(self, path: str) -> int:
        return self._inode(path).modified_ms

    def read_small(self, path: str) -> bytes:
        self.faults.before(DiskCall.READ, path)
        return bytes(self._inode(path).data)

    def write_atomic(self, path: str, data: bytes, *, is_durable: bool) -> None:
        """In the steps of DiskFiles: a temporary file, its sync if durable, the rename, the directory's sync."""
        temporary = path + _TEMPORARY_SUFFIX
        try:
            self._write_temporary(temporary, data, is_durable=is_durable)
            self.rename(temporary, path)
        except OSError:
            with suppress(OSError):  # the first error is the one to tell
                self.unlink(temporary)
            raise
        if is_durable:
            self.sync_dir(path.rpartition("/")[0])

    def _write_temporary(self, path: str, data: bytes, *, is_durable: bool) -> None:
        handle = self.open(path, create=True)
        if handle.size_bytes:
            handle.truncate(0)
        if data and handle.append([data]) != len(data):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), path)
        if is_durable:
            handle.sync()
        handle.close()

    # --- paths

    def _node(self, path: str) -> Node:
        node = self.names.find(path)
        if node is None:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
        return node

    def _inode(self, path: str) -> Inode:
        node = self._node(path)
        if isinstance(node, Directory):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)
        return node

    def _directory(self, path: str) -> Directory:
        node = self._node(path)
        if isinstance(node, Inode):
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), path)
        return node

    def _parent(self, path: str) -> tuple[Directory, str]:
        directory, _, name = path.rpartition("/")
        return self._directory(directory), name


def _directories(root: Directory) -> Iterator[Directory]:
    yield root
    for node in root.entries.values():
        if isinstance(node, Directory):
            yield from _directories(node)
