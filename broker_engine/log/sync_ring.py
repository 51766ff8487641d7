"""fdatasync that no thread of ours waits for: the kernel's io_uring, by ctypes. Linux, x86-64.

A thread that syncs needs the interpreter twice for each file, and takes it from the event loop: with three brokers on
two cores that cost more than the syncs (../decisions/0004). Here the loop hands descriptors over with one system call,
and an eventfd tells it when some are done. The kernel's workers are threads of the process: it pays for them.

One ring belongs to one thread. Its head and tail are shared with the kernel; the submitting side needs no barrier,
since the kernel reads it within our system call. The completing side is written on another core: x86 shows its
entry before its tail, other machines need not.
"""

from __future__ import annotations

import ctypes
import errno
import mmap
import os
import platform
import struct
from collections.abc import Sequence
from contextlib import suppress

ENTRIES = 64
"""More than are ever under way at once: then neither queue can overflow."""

_SETUP, _ENTER, _REGISTER = 425, 426, 427  # the same on every architecture
_REGISTER_EVENTFD, _REGISTER_WORKERS_MAX = 4, 19
_OP_FSYNC, _FSYNC_DATASYNC = 3, 1
_SUBMISSIONS_AT = 0x1000_0000
_PARAMS_BYTES, _ENTRY_BYTES, _COMPLETION_BYTES = 120, 64, 16
_COUNTS = struct.Struct("<2I")
_OFFSETS = struct.Struct("<10I")
_SUBMISSION_OFFSETS_AT, _COMPLETION_OFFSETS_AT = 40, 80
_ENTRY = struct.Struct("<BBHiQQIIQ24x")
"""Operation, flags, priority, descriptor, offset, address, length, how to sync, token."""
_COMPLETION = struct.Struct("<Qi4x")
"""Token, result."""
_WORD_BYTES = 4
_WRAP = 0xFFFF_FFFF
_TRY_AGAIN = (errno.EAGAIN, errno.EBUSY, errno.EINTR)


def open_sync_ring(worker_count: int) -> SyncRing | None:
    """None where the kernel has none, or a container's rules keep us from it."""
    if platform.system() != "Linux" or platform.machine() != "x86_64":
        return None
    with suppress(OSError):
        return SyncRing(worker_count)
    return None


class SyncRing:
    def __init__(self, worker_count: int) -> None:
        # Holds the interpreter during the call: it is a microsecond, and letting go of it is what this is to avoid.
        self._system_call = ctypes.PyDLL(None, use_errno=True).syscall
        self._system_call.restype = ctypes.c_long
        params = ctypes.create_string_buffer(_PARAMS_BYTES)
        self._descriptor = self._call(_SETUP, ENTRIES, params)
        self._event = -1
        try:
            self._map(bytes(params))
            self._event = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
            self._register(_REGISTER_EVENTFD, (ctypes.c_int * 1)(self._event))
            self._register(_REGISTER_WORKERS_MAX, (ctypes.c_uint * 2)(worker_count, worker_count))
        except OSError:
            self.close()
            raise

    def _call(self, number: int, *arguments: object) -> int:
        result: int = self._system_call(number, *arguments)
        if result < 0:
            error = ctypes.get_errno()
            raise OSError(error, os.strerror(error))
        return result

    def _register(self, operation: int, values: ctypes.Array[ctypes.c_int] | ctypes.Array[ctypes.c_uint]) -> None:
        self._call(_REGISTER, self._descriptor, operation, values, len(values))

    def _map(self, params: bytes) -> None:
        entry_count, completion_count = _COUNTS.unpack_from(params)
        _, tail, mask, _, _, _, array, *_ = _OFFSETS.unpack_from(params, _SUBMISSION_OFFSETS_AT)
        done_head, done_tail, done_mask, _, _, done, *_ = _OFFSETS.unpack_from(params, _COMPLETION_OFFSETS_AT)
        size_bytes = max(array + entry_count * _WORD_BYTES, done + completion_count * _COMPLETION_BYTES)
        self._queues = mmap.mmap(self._descriptor, size_bytes)
        self._entries = mmap.mmap(self._descriptor, entry_count * _ENTRY_BYTES, offset=_SUBMISSIONS_AT)
        words = self._words = memoryview(self._queues).cast("I")
        self._tail = tail // _WORD_BYTES
        self._mask = words[mask // _WORD_BYTES]
        self._done_head, self._done_tail = done_head // _WORD_BYTES, done_tail // _WORD_BYTES
        self._done_mask, self._done = words[done_mask // _WORD_BYTES], done
        for index in range(entry_count):
            words[array // _WORD_BYTES + index] = index

    def fileno(self) -> int:
        """Becomes readable when something has ended."""
        return self._event

    def begin(self, wanted: Sequence[tuple[int, int]]) -> int:
        """Sync these (descriptor, token), `ENTRIES` at most. How many were taken, from the first on: fewer where the
        kernel has no memory for more just now. OSError: none was.
        """
        words, tail = self._words, self._words[self._tail]
        for number, (descriptor, token) in enumerate(wanted):
            position = ((tail + number) & self._mask) * _ENTRY_BYTES
            _ENTRY.pack_into(self._entries, position, _OP_FSYNC, 0, 0, descriptor, 0, 0, 0, _FSYNC_DATASYNC, token)
        words[self._tail] = (tail + len(wanted)) & _WRAP
        taken = 0
        try:
            taken = self._call(_ENTER, self._descriptor, len(wanted), 0, 0, None, 0)
        except OSError as error:
            if error.errno not in _TRY_AGAIN:
                raise
        finally:
            words[self._tail] = (tail + taken) & _WRAP
        return taken

    def ended(self) -> list[tuple[int, OSError | None]]:
        """(token, what went wrong) of each that has ended since the last time."""
        with suppress(BlockingIOError):
            os.eventfd_read(self._event)
        words = self._words
        head, tail = words[self._done_head], words[self._done_tail]
        results: list[tuple[int, OSError | None]] = []
        while head != tail:
            position = self._done + (head & self._done_mask) * _COMPLETION_BYTES
            token, result = _COMPLETION.unpack_from(self._queues, position)
            results.append((token, None if result >= 0 else OSError(-result, os.strerror(-result))))
            head = (head + 1) & _WRAP
        words[self._done_head] = head
        return results

    def close(self) -> None:
        """Nothing may be under way."""
        os.close(self._descriptor)
        if self._event >= 0:
            os.close(self._event)
