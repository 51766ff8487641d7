"""A long poll: it hangs on the partitions that it names and on one timer, so that an append wakes only who wants it."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Protocol


class Waitable(Protocol):
    """A partition, as far as a long poll knows it."""

    fetch_waiters: dict[FetchWaiter, None]


class FetchWaiter:
    def __init__(
        self,
        partitions: Sequence[Waitable],
        missing_bytes: int,
        wait_s: float,
        loop: asyncio.AbstractEventLoop,
        *,
        is_committed_only: bool = False,
    ) -> None:
        self.is_committed_only = is_committed_only
        """Reads below the last stable offset: what is above it is no news."""
        self._partitions = partitions
        self._missing_bytes = missing_bytes
        self._loop = loop
        self._ready: asyncio.Future[None] = loop.create_future()
        self.is_over = False
        """The time is up: answer with what there is."""
        self._timer = loop.call_later(wait_s, self._on_time)
        for partition in partitions:
            partition.fetch_waiters[self] = None

    @property
    def is_ready(self) -> bool:
        return self._ready.done()

    async def wait(self) -> None:
        await self._ready

    def notify(self, new_bytes: int) -> None:
        """So many more bytes became visible in one of the partitions."""
        self._missing_bytes -= new_bytes
        if self._missing_bytes <= 0 and not self._ready.done():
            self._ready.set_result(None)

    def wake(self) -> None:
        """Something else changed: look again at once."""
        self._missing_bytes = 0
        self.notify(0)

    def rearm(self, missing_bytes: int) -> None:
        """What woke us was not enough. Called without an await since the last read, so nothing is missed."""
        self._missing_bytes = missing_bytes
        self._ready = self._loop.create_future()

    def close(self) -> None:
        self._timer.cancel()
        for partition in self._partitions:
            partition.fetch_waiters.pop(self, None)

    def _on_time(self) -> None:
        self.is_over = True
        self.close()
        if not self._ready.done():
            self._ready.set_result(None)
