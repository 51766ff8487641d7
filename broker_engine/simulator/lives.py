"""An application in a simulated cluster: one process after the other in its place, which crash, are stopped, go on.

What happens to them is drawn here, by the seed and the place's name; what they are told goes into their histories.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from random import Random
from typing import Any

from broker_engine.simulator.clients import SimClients

_FATES = {"crash": 3, "vanish": 1, "stop": 3, "leave": 2}
"""Killed; killed so that nobody is told; stopped for a while, with a successor at work; asked to end."""
_LOOK_EVERY_S = 0.1
_STOPPED_S_MAX = 5.0


class Life:
    """One process on a host of its own."""

    def __init__(self, clients: SimClients, name: str, host: str) -> None:
        self.name = name
        self.host = host
        self.is_leaving = False
        """It ends when it has done what it is about to do."""
        self.process = clients.loop.new_process(name)
        self.task: asyncio.Task[None] | None = None
        self._clients = clients

    @property
    def is_over(self) -> bool:
        return self.task is None or self.task.done() or not self.process.is_alive

    @property
    def error(self) -> BaseException | None:
        """What it ended by, if it was not meant to."""
        is_ended = self.task is not None and self.task.done() and not self.task.cancelled()
        return self.task.exception() if is_ended and self.task is not None else None

    def kill(self, *, is_silent: bool) -> None:
        self._clients.loop.kill(self.process)
        self._clients.cluster.net.drop_host(self.host, is_silent=is_silent)


class Place:
    """Where one process after the other does the same work. It belongs to the world's process, which never dies."""

    def __init__(
        self,
        clients: SimClients,
        name: str,
        number: int,
        work: Callable[[Life], Coroutine[Any, Any, None]],
        *,
        life_s: float,
    ) -> None:
        self.name = name
        self.life: Life | None = None
        """The latest; those before it may have been stopped, and go on."""
        self.is_calm = False
        """Nothing happens to its processes any more."""
        self._clients = clients
        self._work = work
        self._life_s = life_s
        self._network = f"127.{2 + number}"
        self._random = Random(f"{clients.loop.seed}/{name}/fates")  # noqa: S311 - a plan, nothing secret
        self._lives: list[Life] = []

    @property
    def errors(self) -> list[str]:
        return [f"{life.name}: {life.error!r}" for life in self._lives if life.error is not None]

    async def run(self) -> None:
        """Until the clients are to stop, and the last process has ended."""
        while not self._clients.is_stopping:
            await self._watch(self._begin())
        while not all(life.is_over for life in self._lives):
            for life in self._lives:
                life.is_leaving = True
            await asyncio.sleep(_LOOK_EVERY_S)

    def _begin(self) -> Life:
        number = len(self._lives)
        host = f"{self._network}.{number // 250}.{1 + number % 250}"
        life = self.life = Life(self._clients, f"{self.name}.{number}", host)
        self._lives.append(life)
        life.task = self._clients.loop.spawn(life.process, self._live(life), life.name)
        return life

    async def _live(self, life: Life) -> None:
        try:
            await self._work(life)
        except Exception:
            life.kill(is_silent=False)  # or what it has begun would go on, such as a member's heartbeats
            raise

    async def _watch(self, life: Life) -> None:
        ends_s = self._clients.loop.now_s + self._random.expovariate(1 / self._life_s)
        while self.is_calm or self._clients.loop.now_s < ends_s:
            if life.is_over or self._clients.is_stopping:
                break
            await asyncio.sleep(_LOOK_EVERY_S)
        if not life.is_over and not self._clients.is_stopping:
            await self._end(life, self._random.choices(list(_FATES), list(_FATES.values()))[0])
        await asyncio.sleep(self._random.choice([0.01, 0.1, 0.5]))

    async def _end(self, life: Life, fate: str) -> None:
        self._clients.cluster.note(f"{life.name}: {fate}")
        if fate in ("crash", "vanish"):
            life.kill(is_silent=fate == "vanish")
        elif fate == "stop":
            self._clients.loop.pause(life.process)
            wait_s = self._random.uniform(0.2, _STOPPED_S_MAX)
            self._clients.loop.spawn(self._clients.loop.world, self._go_on(life, wait_s), f"{life.name} goes on")
        else:
            life.is_leaving = True
            while not life.is_over:  # noqa: ASYNC110 - virtual time
                await asyncio.sleep(_LOOK_EVERY_S)

    async def _go_on(self, life: Life, wait_s: float) -> None:
        """It goes on with what it was about to do: that it has a successor, the cluster has to tell it."""
        await asyncio.sleep(wait_s)
        life.is_leaving = True
        self._clients.loop.resume(life.process)
