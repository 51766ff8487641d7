"""Flushes that the kernel runs: no thread of ours waits for the disk, and none takes the interpreter from the loop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from itertools import count
from typing import Protocol

from broker_engine.log.sync_ring import ENTRIES, SyncRing

_FILES_PER_JOB_MAX = 8
"""A log that could not be flushed for long has more segments than that: a thread takes its time with them."""
_RETRY_S = 0.01


class RingJob(Protocol):
    def descriptors(self) -> list[int]: ...

    def note_error(self, error: OSError) -> None: ...


@dataclass(slots=True)
class _UnderWay:
    job: RingJob
    on_done: Callable[[], None]
    left_count: int


class FlushRing:
    def __init__(self, ring: SyncRing, *, jobs_max: int) -> None:
        """`jobs_max`: who gives us jobs has no more of them under way."""
        assert jobs_max * _FILES_PER_JOB_MAX <= ENTRIES, "all that is under way has to fit in the kernel's queues"
        self._ring = ring
        self._loop: asyncio.AbstractEventLoop | None = None
        self._tokens = count()
        self._under_way: dict[int, _UnderWay] = {}
        self._wanted: list[tuple[int, int]] = []
        """Descriptors that the kernel has not taken yet, each with its job's token."""

    def take(self, job: RingJob, on_done: Callable[[], None]) -> bool:
        """Will be run with the next `begin`, and `on_done` called on the loop. False: this one is for a thread."""
        descriptors = job.descriptors()
        if not 0 < len(descriptors) <= _FILES_PER_JOB_MAX:
            return False
        token = next(self._tokens)
        self._under_way[token] = _UnderWay(job, on_done, len(descriptors))
        self._wanted += [(descriptor, token) for descriptor in descriptors]
        return True

    def begin(self) -> None:
        """All that was taken, by one system call."""
        if not self._wanted:
            return
        loop = self._loop or self._watch()
        wanted, self._wanted = self._wanted, []
        try:
            taken = self._ring.begin(wanted)
        except OSError as error:
            for _, token in wanted:
                self._end(token, error)
            return
        self._wanted = wanted[taken:]
        if self._wanted:
            loop.call_later(_RETRY_S, self.begin)

    def close(self) -> None:
        """Nothing may be under way."""
        if self._loop is not None:
            self._loop.remove_reader(self._ring.fileno())
        self._ring.close()

    def _watch(self) -> asyncio.AbstractEventLoop:
        self._loop = asyncio.get_running_loop()
        self._loop.add_reader(self._ring.fileno(), self._on_ended)
        return self._loop

    def _on_ended(self) -> None:
        for token, error in self._ring.ended():
            self._end(token, error)

    def _end(self, token: int, error: OSError | None) -> None:
        under_way = self._under_way[token]
        if error is not None:
            under_way.job.note_error(error)
        under_way.left_count -= 1
        if under_way.left_count == 0:
            del self._under_way[token]
            under_way.on_done()
