"""A loop that stands still is told of, with where it stands; one that only has nothing to do is not."""

from __future__ import annotations

import asyncio
import logging
import re
import threading
import time
from collections.abc import Callable, Iterator

import pytest
import uvloop

from broker_engine.server import loop_watch
from broker_engine.server.loop_watch import OVERDUE_S, LoopWatch
from tests.broker_engine.net.test_sockets import until

BLOCKED_S = 0.4
PATIENCE_S = 20.0


class Told(logging.Handler):
    """What the watch has said, and a wait for more of it that does not need the loop."""

    def __init__(self) -> None:
        super().__init__()
        self.texts: list[str] = []
        self._has_stalled = threading.Event()

    def emit(self, record: logging.LogRecord) -> None:
        self.texts.append(record.getMessage())
        if "has stood still" in self.texts[-1]:
            self._has_stalled.set()

    def wait_for_stall(self) -> None:
        assert self._has_stalled.wait(PATIENCE_S)
        self._has_stalled.clear()


@pytest.fixture
def told() -> Iterator[Told]:
    handler = Told()
    loop_watch.log.addHandler(handler)
    yield handler
    loop_watch.log.removeHandler(handler)


def hold_up_the_loop(told: Told) -> None:
    """At least so long; on a machine that is busy with other things, until it is noticed."""
    until_s = time.monotonic() + BLOCKED_S
    told.wait_for_stall()
    while time.monotonic() < until_s:
        pass


def hold_up_unheard(watch: LoopWatch) -> None:
    count, until_s = watch.stall_count, time.monotonic() + PATIENCE_S
    while watch.stall_count == count:
        assert time.monotonic() < until_s


async def next_beat(watch: LoopWatch) -> None:
    count = watch.beat_count
    await until(lambda: watch.beat_count > count)


@pytest.mark.parametrize("run", [asyncio.run, uvloop.run], ids=["asyncio", "uvloop"])
def test_a_loop_that_is_held_up_is_told_of_with_its_stack(told: Told, run: Callable[..., None]) -> None:
    async def work() -> None:
        with LoopWatch() as watch:
            hold_up_the_loop(told)
            await next_beat(watch)

    run(work())
    stall, end = told.texts
    assert "hold_up_the_loop(told)" in stall
    stood_ms = re.match(r"the event loop has stood still for (\d+) ms \(0 more times", stall)
    assert stood_ms is not None
    assert int(stood_ms[1]) >= OVERDUE_S * 1000
    assert re.match(r"the event loop goes on, \d{3,} ms after", end)


async def test_a_loop_that_has_nothing_to_do_does_not_stand_still() -> None:
    longest_s = 0.0
    with LoopWatch() as watch:
        for _ in range(5):
            began_s = time.monotonic()
            await next_beat(watch)
            longest_s = max(longest_s, time.monotonic() - began_s)
    assert watch.stall_count == 0 or longest_s > OVERDUE_S, "a busy machine may hold it up, nothing else"


async def test_stalls_close_together_are_counted_and_told_of_with_the_next(told: Told) -> None:
    with LoopWatch() as watch:
        hold_up_the_loop(told)
        for _ in range(2):
            await next_beat(watch)
            hold_up_unheard(watch)
        await next_beat(watch)
        watch.quiet_s = 0.0
        hold_up_the_loop(told)
    stalls = [text for text in told.texts if "has stood still" in text]
    assert ["(0 more times" in stalls[0], "(2 more times" in stalls[1]] == [True, True]
    assert len(stalls) == 2


async def test_the_thread_ends_with_the_watch() -> None:
    with LoopWatch():
        assert "loop watch" in [thread.name for thread in threading.enumerate()]
    assert "loop watch" not in [thread.name for thread in threading.enumerate()]
