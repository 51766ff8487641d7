"""The broker's background tasks: each has a name, an owner that ends it, and a log line when it fails."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine
from typing import Any

log = logging.getLogger(__name__)

_PAUSE_AFTER_ERROR_S = 1.0

Work = Callable[[], Coroutine[Any, Any, None]]


class Supervisor:
    def __init__(self) -> None:
        self._tasks: dict[asyncio.Task[None], None] = {}  # in order, so that a simulated run ends the same way twice

    def spawn(self, work: Coroutine[Any, Any, None], name: str) -> asyncio.Task[None]:
        task = asyncio.get_running_loop().create_task(work, name=name)
        self._tasks[task] = None
        task.add_done_callback(self._on_done)
        return task

    def keep_running(self, work: Work, name: str) -> asyncio.Task[None]:
        """Begun again after an error: what failed once may do better in the next round."""
        return self.spawn(_run_again_after_errors(work, name), name)

    def cancel(self) -> None:
        for task in list(self._tasks):
            task.cancel()

    async def stop(self) -> None:
        """Cancel all and wait until they have ended."""
        tasks = list(self._tasks)
        self.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def join(self) -> None:
        """Wait until all have ended by themselves."""
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _on_done(self, task: asyncio.Task[None]) -> None:
        self._tasks.pop(task, None)
        if not task.cancelled() and (error := task.exception()) is not None:
            log.error("task '%s' ended", task.get_name(), exc_info=error)


async def _run_again_after_errors(work: Work, name: str) -> None:
    while True:
        try:
            await work()
            return
        except Exception:
            log.exception("%s failed and is started again", name)
            await asyncio.sleep(_PAUSE_AFTER_ERROR_S)
