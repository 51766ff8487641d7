"""The simulated event loop: virtual time, one order per seed, processes that stop and die."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

import pytest

from broker_engine.simulator.sim_loop import DeadlineReached, NothingLeft, SimLoop

T = TypeVar("T")


def run(loop: SimLoop, work: Coroutine[Any, Any, T]) -> T:
    return loop.run_until(loop.spawn(loop.world, work, "test"), deadline_s=1_000)


def test_time_jumps_to_the_next_timer() -> None:
    loop = SimLoop(1)
    run(loop, asyncio.sleep(500))
    assert 500 <= loop.now_s < 500.01


def test_time_outs_events_and_threads_work_as_elsewhere() -> None:
    async def story() -> list[str]:
        seen, event = [], asyncio.Event()
        try:
            async with asyncio.timeout(3):
                await event.wait()
        except TimeoutError:
            seen.append("timeout")
        asyncio.get_running_loop().call_later(1, event.set)
        await event.wait()
        seen.append(await asyncio.to_thread(lambda: "thread"))
        with pytest.raises(OSError, match="disk"):
            await asyncio.to_thread(_fail)
        return seen

    assert run(SimLoop(1), story()) == ["timeout", "thread"]


def _fail() -> None:
    raise OSError("disk")


def _orders(seed: int) -> list[str]:
    loop, order = SimLoop(seed), []

    async def step(name: str) -> None:
        for number in range(5):
            order.append(f"{name}{number}")
            await asyncio.sleep(0)

    tasks = [loop.spawn(loop.new_process(name), step(name), name) for name in "abc"]
    run(loop, _all(tasks))
    return order


async def _all(tasks: list[asyncio.Task[None]]) -> None:
    await asyncio.wait(tasks)


def test_the_seed_decides_which_process_goes_next() -> None:
    assert _orders(1) == _orders(1)
    assert len({tuple(_orders(seed)) for seed in range(10)}) > 5
    assert [step for step in _orders(3) if step.startswith("a")] == [f"a{number}" for number in range(5)]


def test_timers_go_by_the_clock_of_their_process() -> None:
    """Its own clock counts 1.25 s where a second passes."""
    loop = SimLoop(1)
    fast = loop.new_process("fast")
    fast.clock_rate = 1.25

    async def story() -> list[float]:
        began_s, seen = asyncio.get_running_loop().time(), []
        await asyncio.sleep(5)
        seen.append(loop.now_s)
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(5):
                await asyncio.Event().wait()
        seen.append(loop.now_s)
        return [*seen, asyncio.get_running_loop().time() - began_s]

    assert loop.run_until(loop.spawn(fast, story(), "story"), deadline_s=60) == pytest.approx([4, 8, 10], abs=0.01)


def test_a_stopped_process_does_nothing_until_it_goes_on() -> None:
    loop, ticks = SimLoop(1), []

    async def tick() -> None:
        while True:
            await asyncio.sleep(1)
            ticks.append(loop.now_s)

    process = loop.new_process("ticker")
    loop.spawn(process, tick(), "tick")
    run(loop, asyncio.sleep(2.5))
    loop.pause(process)
    run(loop, asyncio.sleep(10))
    assert len(ticks) == 2
    loop.resume(process)
    run(loop, asyncio.sleep(0.1))
    assert len(ticks) == 3
    assert ticks[-1] > 12


def test_a_killed_process_does_not_even_clean_up() -> None:
    loop, seen = SimLoop(1), []

    async def work() -> None:
        try:
            await asyncio.sleep(100)
        finally:
            seen.append("cleanup")

    process = loop.new_process("worker")
    loop.spawn(process, work(), "work")
    run(loop, asyncio.sleep(1))
    loop.kill(process)
    run(loop, asyncio.sleep(200))
    assert seen == []


def test_who_waits_for_nothing_is_told() -> None:
    async def wait_for_ever() -> None:
        await asyncio.get_running_loop().create_future()

    with pytest.raises(NothingLeft):
        run(SimLoop(1), wait_for_ever())
    with pytest.raises(DeadlineReached):
        run(SimLoop(1), asyncio.sleep(2_000))
