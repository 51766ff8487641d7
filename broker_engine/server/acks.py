"""Waiting for acks=all: one request, several partitions, one time-out."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Protocol

from broker_engine.errors import ErrorCode

OnAcked = Callable[[ErrorCode], None]
"""Called once: NONE when min.insync.replicas have it, else why they never will."""


class Acked(Protocol):
    """One partition's part of the answer."""

    error_code: int


class AckWait:
    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._waiting: dict[int, Acked] = {}
        self._ready: asyncio.Future[None] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self.has_misdirected = False
        """Some partition is led elsewhere: the answer says where."""

    @property
    def is_over(self) -> bool:
        return not self._waiting

    def expect(self, answer: Acked) -> OnAcked:
        """The answer is not complete before the returned function is called, or the time is up."""
        self._waiting[id(answer)] = answer
        return lambda code: self._settle(answer, code)

    def start_timer(self, wait_s: float) -> None:
        self._ready = self._loop.create_future()
        self._timer = self._loop.call_later(wait_s, self._on_time)

    async def wait(self) -> None:
        assert self._ready is not None, "start_timer comes first"
        await self._ready

    def _settle(self, answer: Acked, code: ErrorCode) -> None:
        if self._waiting.pop(id(answer), None) is None:
            return  # too late: the client was told so
        if code is not ErrorCode.NONE:
            answer.error_code = code
        if not self._waiting:
            self._finish()

    def _on_time(self) -> None:
        for answer in self._waiting.values():
            answer.error_code = ErrorCode.REQUEST_TIMED_OUT
        self._waiting.clear()
        self._finish()

    def _finish(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        if self._ready is not None and not self._ready.done():
            self._ready.set_result(None)
