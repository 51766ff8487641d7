"""Long work on a log in a thread, at a bounded rate, that ends soon when the broker stops."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

_SLEEP_S_MIN = 0.005


class WorkStopped(Exception):  # noqa: N818 - no error: the broker stops
    """Raised in the thread, at the next batch."""


class Pacer:
    """Told the bytes of every batch, in the thread: sleeps so that their rate stays below the bound."""

    def __init__(self, bytes_per_s_max: int, sleep: Callable[[float], None] = time.sleep) -> None:
        self._bytes_per_s_max = bytes_per_s_max
        self._sleep = sleep
        self._debt_s = 0.0
        self._is_stopped = False

    def __call__(self, size_bytes: int) -> None:
        if self._is_stopped:
            raise WorkStopped
        self._debt_s += size_bytes / self._bytes_per_s_max
        if self._debt_s >= _SLEEP_S_MIN:
            self._sleep(self._debt_s)
            self._debt_s = 0.0

    async def run(self, call: Callable[[], None]) -> None:
        """In a thread, to its end, also when this task is cancelled: no log is closed under who works on it."""
        running = asyncio.get_running_loop().run_in_executor(None, call)
        try:
            await asyncio.shield(running)
        except asyncio.CancelledError:
            self._is_stopped = True
            await asyncio.wait([running])
            if not running.cancelled() and not isinstance(running.exception(), WorkStopped | None):
                running.result()
            raise
