"""Files of segments that are in no log any more, and wait for their removal (`file.delete.delay.ms`).

One schedule for all logs of a broker, owned by its loop. It is memory only: what waits is named `.deleted`, which a
restart removes.
"""

from __future__ import annotations

from collections.abc import Iterable
from heapq import heappop, heappush

from broker_engine.clock import Clock
from broker_engine.log.retention import DeletedSegment

COUNT_MAX = 1000
"""Of segments that wait; with more the next in line goes early."""


class Removals:
    def __init__(self, clock: Clock, *, count_max: int = COUNT_MAX) -> None:
        self._clock = clock
        self._count_max = count_max
        self._waiting: list[tuple[int, int, DeletedSegment]] = []
        """A heap by when each is due; the number keeps those of one time in order."""
        self._added_count = 0

    def __len__(self) -> int:
        return len(self._waiting)

    def add(self, segments: Iterable[DeletedSegment], delay_ms: int) -> None:
        due_ms = self._clock.monotonic_ms() + delay_ms
        for segment in segments:
            self._added_count += 1
            heappush(self._waiting, (due_ms, self._added_count, segment))

    def take(self, *, at_once: bool = False) -> list[DeletedSegment]:
        """What is due, for a thread to remove; with `at_once` everything."""
        now_ms, taken = self._clock.monotonic_ms(), []
        while self._waiting and (at_once or self._waiting[0][0] <= now_ms or len(self._waiting) > self._count_max):
            taken.append(heappop(self._waiting)[2])
        return taken
