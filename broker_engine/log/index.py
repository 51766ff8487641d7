"""Sparse indexes in Kafka's formats: `.index` (relative offset, position), `.timeindex` (timestamp, relative offset).

Both are lists of pairs with rising keys, asked for the last entry at or below a key. The active segment's index grows
in memory and is written when the segment is sealed; a sealed one is searched in its file, so that memory does not grow
with what is stored. They are caches: recovery rebuilds what is missing or senseless.
"""

from __future__ import annotations

import struct
from typing import Protocol

from broker_engine.log.file_seam import FileHandle, Files

OFFSET_ENTRY = struct.Struct(">ii")
TIME_ENTRY = struct.Struct(">qi")
_BLOCK_ENTRIES = 256
_BELOW_ALL_KEYS = -(1 << 63) - 1

Entry = tuple[int, int]


class Index(Protocol):
    @property
    def entry_count(self) -> int: ...

    def floor(self, key: int) -> Entry | None:
        """The last entry whose key is not above `key`."""
        ...

    def first_at_value(self, value: int) -> Entry | None:
        """The first entry whose value is not below `value`: positions rise with offsets."""
        ...

    @property
    def last(self) -> Entry | None: ...


class GrowingIndex:
    """In memory, already packed as in the file."""

    __slots__ = ("_entry", "_last_key", "_packed")

    def __init__(self, entry: struct.Struct, packed: bytes = b"") -> None:
        assert len(packed) % entry.size == 0
        self._entry = entry
        self._packed = bytearray(packed)
        self._note_last()

    def _note_last(self) -> None:
        """Kept beside the bytes: a recovery scan asks for it at every entry."""
        last = self.last
        self._last_key = _BELOW_ALL_KEYS if last is None else last[0]

    @property
    def entry_count(self) -> int:
        return len(self._packed) // self._entry.size

    @property
    def last(self) -> Entry | None:
        return _entry_at(self._packed, self._entry, self.entry_count - 1) if self._packed else None

    def append(self, key: int, value: int) -> None:
        if key > self._last_key:
            self._packed += self._entry.pack(key, value)
            self._last_key = key

    def floor(self, key: int) -> Entry | None:
        last = self.last
        if last is None or last[0] <= key:
            return last  # most readers are at the tail
        return _floor_in(self._packed, self._entry, key)

    def first_at_value(self, value: int) -> Entry | None:
        return _first_at_value(self._packed, self._entry, value)

    def drop_from(self, *, key: int | None = None, value: int | None = None) -> None:
        """Forget entries with a key, or a value, at or above the given one."""
        while (last := self.last) is not None:
            if not ((key is not None and last[0] >= key) or (value is not None and last[1] >= value)):
                break
            del self._packed[-self._entry.size :]
        self._note_last()

    def pack(self) -> bytes:
        return bytes(self._packed)


class StoredIndex:
    """In its file, searched with a handful of small reads. Opened on first use."""

    __slots__ = ("_entry", "_files", "_handle", "_path")

    def __init__(self, entry: struct.Struct, files: Files, path: str) -> None:
        self._entry = entry
        self._files = files
        self._path = path
        self._handle: FileHandle | None = None

    @property
    def is_well_formed(self) -> bool:
        return self._files.exists(self._path) and self.handle.size_bytes % self._entry.size == 0

    @property
    def entry_count(self) -> int:
        return self.handle.size_bytes // self._entry.size

    @property
    def last(self) -> Entry | None:
        count = self.entry_count
        return self._read_entry(count - 1) if count else None

    def floor(self, key: int) -> Entry | None:
        size = self._entry.size
        low, high = 0, self.entry_count  # the answer is the entry before the first one above `key`
        while high - low > _BLOCK_ENTRIES:
            middle = (low + high) // 2
            if self._read_entry(middle)[0] <= key:
                low = middle
            else:
                high = middle
        return _floor_in(self.handle.pread((high - low) * size, low * size), self._entry, key)

    def first_at_value(self, value: int) -> Entry | None:
        size = self._entry.size
        low, high = 0, self.entry_count  # entries before `low` are below, that at `high`, if there is one, is not
        while high - low > _BLOCK_ENTRIES:
            middle = (low + high) // 2
            if self._read_entry(middle)[1] < value:
                low = middle + 1
            else:
                high = middle
        count = min(high + 1, self.entry_count) - low
        return _first_at_value(self.handle.pread(count * size, low * size), self._entry, value)

    def read_all(self) -> bytes:
        return self.handle.pread(self.entry_count * self._entry.size, 0)

    def close(self) -> None:
        if self._handle is not None:
            self._handle.close()

    def _read_entry(self, number: int) -> Entry:
        return _entry_at(self.handle.pread(self._entry.size, number * self._entry.size), self._entry, 0)

    @property
    def handle(self) -> FileHandle:
        if self._handle is None:
            self._handle = self._files.open(self._path)
        return self._handle


def _entry_at(packed: bytes | bytearray, entry: struct.Struct, number: int) -> Entry:
    key, value = entry.unpack_from(packed, number * entry.size)
    return key, value


def _floor_in(packed: bytes | bytearray, entry: struct.Struct, key: int) -> Entry | None:
    low, high = 0, len(packed) // entry.size
    while low < high:
        middle = (low + high) // 2
        if _entry_at(packed, entry, middle)[0] <= key:
            low = middle + 1
        else:
            high = middle
    return _entry_at(packed, entry, low - 1) if low else None


def _first_at_value(packed: bytes | bytearray, entry: struct.Struct, value: int) -> Entry | None:
    low, high = 0, len(packed) // entry.size
    while low < high:
        middle = (low + high) // 2
        if _entry_at(packed, entry, middle)[1] < value:
            low = middle + 1
        else:
            high = middle
    return _entry_at(packed, entry, low) if low < len(packed) // entry.size else None
