"""Says goodbye on every WebSocket before the server goes.

Uvicorn closes sockets with a bare 1012 as soon as it sees the stop signal. So we stand in front of its handler: first
the sockets drain (bounded in time), then the signal is handed on.
"""

from __future__ import annotations

import asyncio
import signal
import threading
from collections.abc import Awaitable, Callable
from types import FrameType
from typing import Any

DRAIN_WITHIN_S = 2.0

Drain = Callable[[], Awaitable[None]]


class OpenSockets:
    """The sockets of this process. Used on the event loop only."""

    def __init__(self) -> None:
        self._drains: set[Drain] = set()
        self.is_draining = False

    def add(self, drain: Drain) -> None:
        self._drains.add(drain)

    def remove(self, drain: Drain) -> None:
        self._drains.discard(drain)

    async def drain(self) -> None:
        self.is_draining = True
        pending = [asyncio.ensure_future(drain()) for drain in tuple(self._drains)]
        if pending:
            await asyncio.wait(pending, timeout=DRAIN_WITHIN_S)


open_sockets = OpenSockets()


async def drain_before_stop_signals() -> None:
    """Call it once the server has installed its own handlers. Off the main thread, where no signal goes, it is idle."""
    if threading.current_thread() is not threading.main_thread():
        return
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, _drain_first(loop, signal.getsignal(number)))


def _drain_first(loop: asyncio.AbstractEventLoop, handler: Any) -> Callable[[int, FrameType | None], None]:
    def on_signal(number: int, frame: FrameType | None) -> None:
        if open_sockets.is_draining:  # a second signal means now
            handler(number, frame)
        else:
            loop.call_soon_threadsafe(start, number)

    def start(number: int) -> None:
        task = loop.create_task(open_sockets.drain())
        task.add_done_callback(lambda _: handler(number, None))

    return on_signal
