"""What goes wrong with one transaction's markers is nothing to another's."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest_asyncio

from broker_engine.clock import SystemRandomness
from broker_engine.errors import ErrorCode
from broker_engine.server.markers import Marker
from tests.broker_engine.server.test_transaction_markers import ME, World


@pytest_asyncio.fixture
async def world() -> AsyncIterator[World]:
    made = World()
    yield made
    made.sender.stop()
    await made.tasks.stop()


def fail() -> None:
    raise AssertionError("a bug")


async def test_an_error_at_the_end_of_one_transaction_takes_no_marker_from_the_others(world: World) -> None:
    world.lead(ME, ME, ME)
    world.sender.send(Marker(1, 0, is_commit=True, coordinator_epoch=4, partitions=(("orders", 0),)), None, fail)
    world.send("in the same request", 1)
    await world.until(lambda: bool(world.written))
    world.send("in the next request", 2)
    await world.until_done("in the same request", "in the next request")


class BrokenOnce:
    """A source of randomness: the wait of whatever is refused hangs on it."""

    def __init__(self, world: World) -> None:
        self._world = world

    def unit(self) -> float:
        self._world.randomness = SystemRandomness()
        self._world.send("behind it", 1)
        raise RuntimeError("a bug")


async def test_a_worker_that_ends_by_an_error_of_ours_leaves_its_queue_to_the_next(world: World) -> None:
    world.lead(ME, ME)
    world.randomness = BrokenOnce(world)  # type: ignore[assignment]
    world.answers[ME] = lambda place: ErrorCode.NOT_ENOUGH_REPLICAS if place[1] == 0 else ErrorCode.NONE
    world.send("refused", 0)
    await world.until_done("behind it")


async def test_what_is_refused_waits_longer_each_time_whatever_others_get_done(world: World) -> None:
    world.lead(ME, ME)
    world.answers[ME] = lambda place: ErrorCode.NOT_ENOUGH_REPLICAS if place[1] == 0 else ErrorCode.NONE
    world.send("refused", 0)
    for count in range(1, 5):
        await world.until(lambda count=count: max(world.sender._parked, default=0) >= count)  # type: ignore[misc]
        world.send(f"accepted {count}", 1)
        await world.until(lambda count=count: len(world.done) == count)  # type: ignore[misc]


async def test_what_waits_equally_long_is_sent_together(world: World) -> None:
    world.lead(ME)
    refused = iter([ErrorCode.NOT_ENOUGH_REPLICAS] * 50)
    world.answers[ME] = lambda place: next(refused, ErrorCode.NONE)
    for number in range(50):
        world.send(str(number), 0)
    await world.until(lambda: len(world.written) == 50)
    await world.until_done(*map(str, range(50)))
    assert world.request_count == 2
