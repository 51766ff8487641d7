"""The way from synchronous callers (DRF views in threads, Celery tasks) to the async client.

One background thread per process runs one event loop. Coroutines are handed over and waited for with a time-out;
`async_to_sync` would make a loop per call and tear the client's connections down with it.
Celery forks its workers: a thread does not survive a fork, so a child starts its own at first use.
"""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Coroutine
from concurrent.futures import TimeoutError as FutureTimeout
from typing import Any, TypeVar

from control_plane.engine.interface import EngineUnavailable

T = TypeVar("T")


class Bridge:
    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None

    def run(self, coroutine: Coroutine[Any, Any, T], timeout_s: float) -> T:
        future = asyncio.run_coroutine_threadsafe(coroutine, self._running_loop())
        try:
            return future.result(timeout_s)
        except FutureTimeout:
            future.cancel()
            raise EngineUnavailable(f"the engine did not answer within {timeout_s:.1f} s") from None

    def _running_loop(self) -> asyncio.AbstractEventLoop:
        with self._lock:
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
                threading.Thread(target=self._loop.run_forever, name="engine-bridge", daemon=True).start()
            return self._loop

    def forget_thread(self) -> None:
        """For a forked child only: the parent's loop and lock are not ours to use."""
        self._lock = threading.Lock()
        self._loop = None


bridge = Bridge()
os.register_at_fork(after_in_child=bridge.forget_thread)
