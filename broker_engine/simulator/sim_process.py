"""A process in the simulation: whose callbacks run, wait while it is stopped, or never run again."""

from __future__ import annotations

import asyncio
from collections import deque
from random import Random
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from broker_engine.simulator.sim_loop import SimHandle

_TASKS_MIN = 64


class ProcessDied(BaseException):
    """Goes up through whatever the process was doing. A BaseException: nothing in the engine may catch it and go on."""


class Process:
    """One operating system process. Everything that it schedules belongs to it."""

    def __init__(self, name: str, number: int, seed: str) -> None:
        self.name = name
        self.number = number
        self.is_alive = True
        self.is_paused = False
        self.ready: deque[SimHandle] = deque()
        self.is_queued = False
        """It stands among those of which the loop picks the next."""
        self.executor_random = Random(f"{seed}/{name}/executor")  # noqa: S311 - a schedule, nothing secret
        self.executor_delay_s = 0.0005
        """How long work in a thread takes, about: mostly that is the disk."""
        self.executor_stalled_until_s = 0.0
        self.clock_rate = 1.0
        """Seconds that its clock counts in one: timers of its own go by that."""
        self.is_watched = False
        self.unseen_count = 0
        self.look_at_s = 0.0
        """For the oracles: events since they last looked, and when they look at the latest."""
        self._tasks: list[asyncio.Task[Any]] = []
        self._tasks_pruned_at = _TASKS_MIN

    def __repr__(self) -> str:
        return f"<Process {self.name}>"

    def adopt(self, task: asyncio.Task[Any]) -> None:
        """Held until the end of the run: a task that is thrown away would run its cleanup in the midst of others."""
        self._tasks.append(task)
        if len(self._tasks) > self._tasks_pruned_at:
            self._tasks = [task for task in self._tasks if not task.done()]
            self._tasks_pruned_at = max(_TASKS_MIN, 2 * len(self._tasks))

    @property
    def pending_tasks(self) -> list[asyncio.Task[Any]]:
        return [task for task in self._tasks if not task.done()]

    def executor_delay(self, now_s: float) -> float:
        """Mostly short, now and then ten times that."""
        unit = self.executor_random.random()
        delay_s = self.executor_delay_s * (0.2 + unit * unit + (9 * unit if unit > 0.97 else 0))
        return delay_s + max(0.0, self.executor_stalled_until_s - now_s)
