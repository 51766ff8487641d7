"""Commands on the metadata: decided on what is committed, written by the quorum, answered when shown.

One group is under way at a time; whatever is asked for meanwhile is decided together and rides the next one.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from broker_engine.errors import BrokerError, ErrorCode
from broker_engine.metadata.decision import Decision
from broker_engine.metadata.image import MetadataImage
from broker_engine.metadata.records import encode_record
from broker_engine.server.bell import Bell

if TYPE_CHECKING:
    from broker_engine.server.metadata_driver import MetadataDriver

R = TypeVar("R")
Command = Callable[[MetadataImage], Decision[R]]


@dataclass(slots=True)
class _Waiting:
    command: Command[Any]
    done: asyncio.Future[tuple[Any, ...]]
    results: tuple[Any, ...] = ()
    end_offset: int = 0
    """Of what it wrote."""

    def settle(self) -> None:
        if not self.done.done():
            self.done.set_result(self.results)

    def fail(self, error: Exception) -> None:
        if not self.done.done():
            self.done.set_exception(error)


class Commands:
    def __init__(self, driver: MetadataDriver) -> None:
        self._driver = driver
        self._waiting: list[_Waiting] = []
        self._in_flight: list[_Waiting] = []
        self._wake = asyncio.Event()
        self._settled = Bell()

    async def commit(self, command: Command[R]) -> tuple[R, ...]:
        if not self._driver.is_leader:
            raise not_controller()
        waiting = _Waiting(command, asyncio.get_running_loop().create_future())
        self._waiting.append(waiting)
        self._wake.set()
        return await waiting.done

    async def run(self) -> None:
        while True:
            await self._wake.wait()
            self._wake.clear()
            while self._waiting:
                group, self._waiting = self._waiting, []
                await self._commit_group(group)

    async def _commit_group(self, group: list[_Waiting]) -> None:
        """Each command decides on what the ones before it wrote; the next group waits until all of them are shown."""
        written = self._driver.image
        for waiting in group:
            try:
                written = await self._write(waiting, written)
            except Exception as error:
                waiting.fail(error)
        while self._in_flight:
            await self._settled.wait()

    async def _write(self, waiting: _Waiting, image: MetadataImage) -> MetadataImage:
        if not self._driver.is_leader:
            raise not_controller()
        decision = waiting.command(image)
        waiting.results = decision.results
        if decision.records:
            entry = await self._driver.propose(tuple(encode_record(record) for record in decision.records))
            if not self._driver.is_leader or self._driver.epoch != entry.epoch:
                raise not_controller()
            waiting.end_offset = entry.end_offset
            image = image.replay(decision.records, entry.base_offset)
        self._in_flight.append(waiting)
        self.settle(self._driver.applied_offset)
        return image

    def settle(self, applied_offset: int) -> None:
        """In order: a command that wrote nothing may have decided on what the one before it wrote."""
        while self._in_flight and self._in_flight[0].end_offset <= applied_offset:
            self._in_flight.pop(0).settle()
        self._settled.ring()

    def fail_undecided(self, decided_offset: int) -> None:
        """Leadership is lost. What is committed but not yet shown is still told; the rest may or may not come to be."""
        is_decided = [waiting.end_offset <= decided_offset for waiting in self._in_flight]
        # Behind the first undecided one even a command that wrote nothing may have answered by what never was.
        count = is_decided.index(False) if False in is_decided else len(is_decided)
        kept, self._in_flight = self._in_flight[:count], self._in_flight[count:]
        self.fail_all(not_controller())
        self._in_flight = kept

    def fail_all(self, error: Exception) -> None:
        lost, self._in_flight, self._waiting = [*self._in_flight, *self._waiting], [], []
        for waiting in lost:
            waiting.fail(error)
        self._settled.ring()


def not_controller() -> BrokerError:
    return BrokerError(ErrorCode.NOT_CONTROLLER, "This node does not lead the metadata quorum.")
