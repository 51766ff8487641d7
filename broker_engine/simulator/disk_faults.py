"""What a disk may do wrong while it has power: told beforehand, call by call, or by a ratio drawn from the seed."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from enum import StrEnum
from random import Random


class DiskCall(StrEnum):
    OPEN = "open"
    READ = "read"
    APPEND = "append"
    TRUNCATE = "truncate"
    SYNC = "sync"
    SYNC_DIR = "sync_dir"
    SYNC_ALL = "sync_all"
    RENAME = "rename"
    UNLINK = "unlink"
    MAKE_DIR = "make_dir"
    REMOVE_DIR = "remove_dir"


@dataclass(frozen=True, slots=True)
class Stall:
    """The disk took its time. Nobody sleeps: whoever simulates time looks at `DiskFaults.stalls`."""

    call: DiskCall
    path: str
    delay_ms: int


@dataclass(slots=True)
class _Planned:
    call: DiskCall
    after_count: int
    """So many calls of this kind go well first."""
    error: int = 0
    delay_ms: int = 0


@dataclass(slots=True)
class DiskFaults:
    random: Random
    capacity_bytes: int | None = None
    """Of all files together; None: no end. ENOSPC for a write of which nothing fits, a short write for the others."""
    error_ratios: dict[DiskCall, float] = field(default_factory=dict)
    short_write_ratio: float = 0.0
    stalls: list[Stall] = field(default_factory=list)
    failed_sync_count: int = 0
    on_call: Callable[[DiskCall, str], None] | None = None
    """Asked before each call: whoever kills a process in the midst of its work raises from here."""
    _planned: list[_Planned] = field(default_factory=list)
    _short_write_bytes: int | None = None
    _is_next_read_misdirected: bool = False

    def fail_next(self, call: DiskCall, *, error: int = errno.EIO, after_count: int = 0) -> None:
        self._planned.append(_Planned(call, after_count, error=error))

    def stall_next(self, call: DiskCall, delay_ms: int, *, after_count: int = 0) -> None:
        self._planned.append(_Planned(call, after_count, delay_ms=delay_ms))

    def shorten_next_write(self, size_bytes: int) -> None:
        self._short_write_bytes = size_bytes

    def misdirect_next_read(self) -> None:
        self._is_next_read_misdirected = True

    def forget(self) -> None:
        """What was planned and has not happened."""
        self._planned.clear()
        self._short_write_bytes = None
        self._is_next_read_misdirected = False

    def before(self, call: DiskCall, path: str) -> None:
        """Every call of the disk comes through here first."""
        if self.on_call is not None:
            self.on_call(call, path)
        if not self._planned and not self.error_ratios:
            return
        for planned in self._due(call):
            self._planned.remove(planned)
            if planned.delay_ms:
                self.stalls.append(Stall(call, path, planned.delay_ms))
            else:
                self._fail(call, planned.error, path)
        ratio = self.error_ratios.get(call, 0.0)
        if ratio and self.random.random() < ratio:
            self._fail(call, errno.EIO, path)

    def _due(self, call: DiskCall) -> list[_Planned]:
        due = []
        for planned in [planned for planned in self._planned if planned.call == call]:
            if planned.after_count == 0:
                due.append(planned)
            planned.after_count -= 1
        return due

    def _fail(self, call: DiskCall, error: int, path: str) -> None:
        if call in (DiskCall.SYNC, DiskCall.SYNC_ALL):
            self.failed_sync_count += 1
        raise OSError(error, os.strerror(error) + ", on command", path)

    def writable_bytes(self, wanted_bytes: int, used_bytes: Iterable[int], path: str) -> int:
        """How much of a write gets through."""
        if self._short_write_bytes is not None:
            wanted_bytes, self._short_write_bytes = min(wanted_bytes, self._short_write_bytes), None
        elif self.short_write_ratio and self.random.random() < self.short_write_ratio:
            wanted_bytes = self.random.randint(0, wanted_bytes)
        if self.capacity_bytes is None:
            return wanted_bytes
        room_bytes = max(0, self.capacity_bytes - sum(used_bytes))
        if wanted_bytes and not room_bytes:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC) + ", on command", path)
        return min(wanted_bytes, room_bytes)

    def read_position(self, position: int, file_bytes: int) -> int:
        """Where a read really goes."""
        if not self._is_next_read_misdirected:
            return position
        self._is_next_read_misdirected = False
        return self.random.randrange(file_bytes) if file_bytes else 0
