"""Every background task has an owner that ends it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine
from typing import Any, TypeVar

from broker_engine.client.errors import ClientClosed

log = logging.getLogger(__name__)

T = TypeVar("T")


class TaskSet:
    def __init__(self, owner: str) -> None:
        self._owner = owner
        self._tasks: set[asyncio.Task[Any]] = set()

    def spawn(self, work: Coroutine[Any, Any, T], name: str) -> asyncio.Task[T]:
        task = asyncio.get_running_loop().create_task(work, name=f"{self._owner}: {name}")
        self._tasks.add(task)
        task.add_done_callback(self._on_done)
        return task

    def _on_done(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and task.exception() is not None:
            # Whoever awaits the task gets the error; for those that nobody awaits this line is all there is.
            log.debug("%s ended with %r", task.get_name(), task.exception())

    async def close(self) -> None:
        """Cancel all and wait until they have ended."""
        tasks = [task for task in self._tasks if task is not asyncio.current_task()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def join(task: asyncio.Task[T]) -> T:
    """Wait for a task that others wait for as well: leaving does not end it, and its end by close() has a name."""
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        caller = asyncio.current_task()
        if task.cancelled() and caller is not None and not caller.cancelling():
            raise ClientClosed("the client was closed meanwhile") from None
        raise
