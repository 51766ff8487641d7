"""Every background task has an owner that ends it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine
from typing import Any, TypeVar

from broker_engine.client.errors import ClientClosed, KafkaError

log = logging.getLogger(__name__)

T = TypeVar("T")


class TaskSet:
    def __init__(self, owner: str) -> None:
        self._owner = owner
        self._tasks: dict[asyncio.Task[Any], None] = {}  # in order, so that a simulated run ends the same way twice

    def spawn(self, work: Coroutine[Any, Any, T], name: str) -> asyncio.Task[T]:
        task = asyncio.get_running_loop().create_task(work, name=f"{self._owner}: {name}")
        self._tasks[task] = None
        task.add_done_callback(self._on_done)
        return task

    def _on_done(self, task: asyncio.Task[Any]) -> None:
        self._tasks.pop(task, None)
        error = None if task.cancelled() else task.exception()
        if isinstance(error, KafkaError):
            log.debug("%s: %s", task.get_name(), error)  # whoever waits for the task gets it
        elif error is not None:
            log.error("%s ended by a bug", task.get_name(), exc_info=error)

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
