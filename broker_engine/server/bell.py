"""Bell: many wait for something to change, and look again when it rings."""

from __future__ import annotations

import asyncio


class Bell:
    def __init__(self) -> None:
        self._rung = asyncio.Event()

    def ring(self) -> None:
        rung, self._rung = self._rung, asyncio.Event()
        rung.set()

    async def wait(self, timeout_s: float | None = None) -> bool:
        """False when the time is up."""
        try:
            async with asyncio.timeout(timeout_s):
                await self._rung.wait()
        except TimeoutError:
            return False
        return True
