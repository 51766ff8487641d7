"""Who waits until a log has come to an offset: committed, for producers; durable, for followers and DeleteRecords."""

from __future__ import annotations

import heapq

from broker_engine.errors import ErrorCode
from broker_engine.server.acks import OnAcked


class OffsetWaiters:
    __slots__ = ("_heap", "_number")

    def __init__(self) -> None:
        self._heap: list[tuple[int, int, OnAcked]] = []  # the number keeps those of equal offsets apart, and in order
        self._number = 0

    def __bool__(self) -> bool:
        return bool(self._heap)

    def add(self, end_offset: int, on_reached: OnAcked) -> None:
        """Called once: NONE when everything below the offset is there, else why it will not be."""
        self._number += 1
        heapq.heappush(self._heap, (end_offset, self._number, on_reached))

    def tell(self, offset: int) -> None:
        heap = self._heap
        while heap and heap[0][0] <= offset:
            heapq.heappop(heap)[2](ErrorCode.NONE)

    def fail(self, code: ErrorCode) -> None:
        waiters, self._heap = self._heap, []
        for _, _, on_reached in sorted(waiters, key=lambda waiter: waiter[:2]):
            on_reached(code)
