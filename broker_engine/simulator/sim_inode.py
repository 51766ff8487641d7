"""One file as a disk and a page cache see it: bytes that are safe, and what was done since, in order.

Operations are positional, so that one that the disk lost leaves a gap of zeros before the next and not another file.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterable
from typing import NamedTuple


class Write(NamedTuple):
    position: int
    data: bytes


class Cut(NamedTuple):
    size_bytes: int


FileOperation = Write | Cut


def apply_operations(content: bytes, operations: Iterable[FileOperation]) -> bytes:
    """What the file holds when the disk has carried out these and no others."""
    result = bytearray(content)
    for operation in operations:
        if isinstance(operation, Cut):
            del result[operation.size_bytes :]
            continue
        if len(result) < operation.position:
            result += bytes(operation.position - len(result))
        result[operation.position : operation.position + len(operation.data)] = operation.data
    return bytes(result)


class Inode:
    __slots__ = ("data", "durable", "has_hidden_loss", "has_untold_loss", "modified_ms", "operation_count", "pending")

    def __init__(self, content: bytes = b"", *, modified_ms: int = 0) -> None:
        self.durable = content
        """Safe from a power failure."""
        self.data: bytes | bytearray = content
        """What processes see. Turned into a bytearray by the first change: most files of an image never change."""
        self.pending: list[FileOperation] = []
        self.operation_count = 0
        """All operations ever; the last of them are pending."""
        self.has_hidden_loss = False
        """Processes see bytes that the disk will never have."""
        self.has_untold_loss = False
        """A sync of the whole disk lost something of it: its next own sync fails."""
        self.modified_ms = modified_ms

    def copy(self) -> Inode:
        twin = Inode(self.durable, modified_ms=self.modified_ms)
        twin.data = self.data if isinstance(self.data, bytes) else bytes(self.data)
        twin.pending = list(self.pending)
        twin.operation_count = self.operation_count
        twin.has_hidden_loss = self.has_hidden_loss
        return twin

    def append(self, data: bytes, now_ms: int) -> None:
        self._note(Write(len(self.data), data), now_ms)
        self._mutable().extend(data)

    def cut(self, size_bytes: int, now_ms: int) -> None:
        assert size_bytes <= len(self.data), "files are cut, never stretched"
        self._note(Cut(size_bytes), now_ms)
        del self._mutable()[size_bytes:]

    def sync(self, operation_count: int | None = None) -> None:
        """Make the first `operation_count` operations ever safe; all of them if none is given."""
        safe_count = self.operation_count - len(self.pending)
        wanted = self.operation_count if operation_count is None else operation_count
        count = max(0, wanted - safe_count)
        self.durable = apply_operations(self.durable, self.pending[:count])
        del self.pending[:count]

    def lose_pending(self) -> None:
        """The kernel gave up on dirty pages: processes still see them, the disk never will."""
        self.pending.clear()
        self.has_hidden_loss = True

    def forget_clean(self) -> None:
        """Only the disk, and what is still on its way there, can be seen from now on."""
        if self.has_hidden_loss:
            self.data = apply_operations(self.durable, self.pending)
            self.has_hidden_loss = False

    def tell_loss(self, path: str) -> None:
        if self.has_untold_loss:
            self.has_untold_loss = False
            raise OSError(errno.EIO, os.strerror(errno.EIO) + ", since a sync of everything", path)

    def flip_bit(self, position: int, bit: int) -> None:
        """In the stored byte, and in the cached copy of it."""
        self._mutable()[position] ^= 1 << bit
        if position < len(self.durable):
            flipped = bytearray(self.durable)
            flipped[position] ^= 1 << bit
            self.durable = bytes(flipped)

    def _note(self, operation: FileOperation, now_ms: int) -> None:
        self.pending.append(operation)
        self.operation_count += 1
        self.modified_ms = now_ms

    def _mutable(self) -> bytearray:
        if not isinstance(self.data, bytearray):
            self.data = bytearray(self.data)
        return self.data
