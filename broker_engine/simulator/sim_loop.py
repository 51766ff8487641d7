"""An event loop without a machine: virtual time, callbacks in an order drawn from a seed, no threads, no sockets.

Each callback belongs to the process in which it was scheduled. Callbacks of one process run in the order in which they
were scheduled (asyncio promises that); which process goes next, and how long work in a thread takes, the seed decides.
When nothing is ready, time jumps to the next timer. Left out: contexts of callbacks, as the engine has no context
variables.
"""

from __future__ import annotations

import asyncio
import heapq
import logging
from asyncio import events
from collections.abc import Callable, Coroutine
from contextvars import Context
from random import Random
from typing import Any, TypeVar

from broker_engine.simulator.sim_process import Process, ProcessDied

log = logging.getLogger(__name__)

T = TypeVar("T")
_CALLBACK_S = 0.000004
"""Time goes on a little with each callback, so that nobody can spin for ever."""
_HASH_MASK = (1 << 61) - 1
_UNSEEN_MAX = 12
_LOOK_EVERY_S = 0.0005
"""Whoever watches a process looks after so many callbacks or so much time: cheaper by a fifth than after each single
one, and nothing that lasts is hidden.
"""


class SimHandle:
    """See asyncio.TimerHandle."""

    __slots__ = ("_when_s", "args", "callback", "is_cancelled", "process")

    def __init__(self, process: Process, when_s: float, callback: Callable[..., object], args: Any) -> None:
        self.process = process
        self.is_cancelled = False
        self._when_s = when_s
        self.callback = callback
        self.args = args

    def cancel(self) -> None:
        self.is_cancelled = True
        self.args = ()

    def cancelled(self) -> bool:
        return self.is_cancelled

    def when(self) -> float:
        return self._when_s

    def describe(self) -> str:
        owner = getattr(self.callback, "__self__", None)
        if isinstance(owner, asyncio.Task):
            return f"task {owner.get_name()}"
        return getattr(self.callback, "__qualname__", repr(self.callback))


class DeadlineReached(Exception):  # noqa: N818 - what happened
    """Virtual time ran out before the work was done."""


class NothingLeft(Exception):  # noqa: N818 - what happened
    """Nobody waits for anything, and the work is not done."""


class SimLoop(asyncio.BaseEventLoop):
    """`world` is the process of whoever arranges faults; it never dies and never stops."""

    def __init__(self, seed: int | str) -> None:
        self._is_inside = self._is_ended = False
        super().__init__()
        self.seed = str(seed)
        self.now_s = 0.0
        self.event_count = 0
        self.trace_hash = 0
        self.unexpected: list[str] = []
        """What callbacks raised and nobody caught."""
        self.on_events: Callable[[Process], None] = lambda process: None
        """Something happened in a process that is watched."""
        self.world = Process("world", 0, self.seed)
        self.current = self.world
        self.processes = [self.world]
        self._random = Random(f"{seed}/schedule")  # noqa: S311 - a schedule, nothing secret
        self._timers: list[tuple[float, int, SimHandle]] = []
        self._timer_number = 0
        self._queued: list[Process] = []

    # --- processes

    def new_process(self, name: str) -> Process:
        process = Process(name, len(self.processes), self.seed)
        self.processes.append(process)
        return process

    def pause(self, process: Process) -> None:
        """As SIGSTOP does."""
        process.is_paused = True

    def resume(self, process: Process) -> None:
        process.is_paused = False
        self._queue(process)

    def kill(self, process: Process) -> None:
        """As SIGKILL does: nothing of it runs any more, not even its cleanup."""
        process.is_alive = False
        process.ready.clear()
        for task in process.pending_tasks:
            task._log_destroy_pending = False  # type: ignore[attr-defined]  # it is meant to be lost

    def run_as(self, process: Process, call: Callable[..., T], *args: object) -> T:
        """From the simulator into a process: what the call schedules belongs to that one."""
        before, self.current = self.current, process
        try:
            return call(*args)
        finally:
            self.current = before

    def spawn(self, process: Process, work: Coroutine[Any, Any, T], name: str) -> asyncio.Task[T]:
        return self.run_as(process, lambda: self.create_task(work, name=name, context=Context()))

    def call_as(self, process: Process, when_s: float, callback: Callable[..., object], *args: object) -> SimHandle:
        handle = SimHandle(process, when_s, callback, args)
        self._push(handle, when_s)
        return handle

    # --- what asyncio asks of a loop

    def time(self) -> float:
        """As the clock of the process says that asks."""
        return self.now_s * self.current.clock_rate

    def call_soon(  # type: ignore[override]  # a handle of our own: it knows its process
        self, callback: Callable[..., object], *args: Any, context: Context | None = None
    ) -> SimHandle:
        process = self.current
        handle = SimHandle(process, self.now_s, callback, args)
        if process.is_alive:
            process.ready.append(handle)
            if not process.is_queued and not process.is_paused:
                process.is_queued = True
                self._queued.append(process)
        return handle

    call_soon_threadsafe = call_soon  # type: ignore[assignment]  # there is one thread

    def call_later(  # type: ignore[override]
        self, delay: float, callback: Callable[..., object], *args: Any, context: Context | None = None
    ) -> SimHandle:
        process = self.current
        return self.call_as(process, self.now_s + delay / process.clock_rate, callback, *args)

    def call_at(  # type: ignore[override]
        self, when: float, callback: Callable[..., object], *args: Any, context: Context | None = None
    ) -> SimHandle:
        process = self.current
        return self.call_as(process, when / process.clock_rate, callback, *args)

    def create_task(  # type: ignore[override]
        self, coro: Coroutine[Any, Any, T], *, name: str | None = None, context: Context | None = None
    ) -> asyncio.Task[T]:
        task = asyncio.Task(coro, loop=self, name=name, context=context)
        self.current.adopt(task)
        return task

    def run_in_executor(  # type: ignore[override]
        self, executor: object, func: Callable[..., T], *args: Any
    ) -> asyncio.Future[T]:
        """The work is done at one moment, and told at a later one; both are drawn."""
        future: asyncio.Future[T] = self.create_future()
        process = self.current
        when_s = self.now_s + process.executor_delay(self.now_s)
        self.call_as(process, when_s, self._do_work, process, future, func, args)
        return future

    def _do_work(self, process: Process, future: asyncio.Future[T], func: Callable[..., T], args: Any) -> None:
        if future.cancelled():
            return  # as an executor does with what had not begun
        try:
            outcome, error = func(*args), None
        except Exception as raised:
            outcome, error = None, raised
        when_s = self.now_s + process.executor_delay(self.now_s) * 0.3
        self.call_as(process, when_s, _tell, future, outcome, error)

    def call_exception_handler(self, context: dict[str, Any]) -> None:
        error = context.get("exception")
        if not isinstance(error, ProcessDied):
            self.unexpected.append(f"{self.current.name}: {context.get('message')}: {error!r}")

    def _asyncgen_finalizer_hook(self, agen: Any) -> None:
        """Nothing: collecting garbage must not change what happens."""

    get_debug = staticmethod(bool)  # False, asked for each future: a call of Python's costs

    def is_running(self) -> bool:
        return self._is_inside

    # --- running

    def run_until(self, work: asyncio.Future[T], deadline_s: float) -> T:
        """The outcome of `work`. DeadlineReached where virtual time runs out first."""
        self._is_inside = True
        events._set_running_loop(self)
        try:
            self._run_until_done(work, deadline_s)
        finally:
            self._is_inside = False
            events._set_running_loop(None)
        return work.result()

    def end(self) -> None:
        """Throw away every task that is left. What their cleanup does reaches nobody."""
        self._closed = True
        self._is_ended = True
        self._timers.clear()
        for process in self.processes:
            for task in process.pending_tasks:
                task._log_destroy_pending = False  # type: ignore[attr-defined]
            self.kill(process)

    def _jump(self, deadline_s: float) -> None:
        """Nobody has anything to do: to the next timer of somebody who lives."""
        timers = self._timers
        while not self._queued:
            if not timers:
                raise NothingLeft(f"at {self.now_s:.3f} s nobody waits for anything")
            when_s, _, handle = heapq.heappop(timers)
            if handle.is_cancelled or not handle.process.is_alive:
                continue
            if when_s > deadline_s:
                raise DeadlineReached(f"{self.now_s:.3f} s of virtual time were not enough")
            self.now_s = max(self.now_s, when_s)
            self._make_ready(handle)

    def _run_until_done(self, work: asyncio.Future[T], deadline_s: float) -> None:
        """Long, and without calls of its own where it can: it goes round once for each event of a run."""
        timers, queued, draw = self._timers, self._queued, self._random.random
        while not work.done():
            if not queued:
                self._jump(deadline_s)
            while timers and timers[0][0] <= self.now_s:
                self._make_ready(heapq.heappop(timers)[2])
            index = int(draw() * len(queued)) if len(queued) > 1 else 0
            process = queued[index]
            ready = process.ready
            if not ready or process.is_paused:
                self._unqueue(index)
                continue
            handle = ready.popleft()
            if not ready:
                self._unqueue(index)
            if not handle.is_cancelled:
                self._run_handle(process, handle)

    def _run_handle(self, process: Process, handle: SimHandle) -> None:
        self.now_s = now_s = self.now_s + _CALLBACK_S
        self.event_count += 1
        self.trace_hash = (self.trace_hash * 1_000_003 + int(now_s * 1e6) * 64 + process.number) & _HASH_MASK
        self.current = process
        try:
            handle.callback(*handle.args)
        except ProcessDied:
            pass
        except Exception as error:
            self.unexpected.append(f"{process.name}: {handle.describe()} raised {error!r}")
            log.exception("%s: %s", process.name, handle.describe())
        finally:
            self.current = self.world
        if process.is_watched:
            process.unseen_count += 1
            if process.unseen_count >= _UNSEEN_MAX or self.now_s >= process.look_at_s:
                process.unseen_count, process.look_at_s = 0, self.now_s + _LOOK_EVERY_S
                self.on_events(process)

    def _make_ready(self, handle: SimHandle) -> None:
        process = handle.process
        if process.is_alive and not handle.is_cancelled:
            process.ready.append(handle)
            if not process.is_queued and not process.is_paused:
                process.is_queued = True
                self._queued.append(process)

    def _queue(self, process: Process) -> None:
        if process.ready and process.is_alive and not process.is_paused and not process.is_queued:
            process.is_queued = True
            self._queued.append(process)

    def _unqueue(self, index: int) -> None:
        """The last one takes its place: the order among them means nothing."""
        queued = self._queued
        queued[index].is_queued = False
        last = queued.pop()
        if index < len(queued):
            queued[index] = last

    def _push(self, handle: SimHandle, when_s: float) -> None:
        if not self._is_ended:
            self._timer_number += 1
            heapq.heappush(self._timers, (when_s, self._timer_number, handle))

    def note(self, number: int) -> None:
        """Something that the trace hash is to tell apart: what was sent, what was drawn."""
        self.trace_hash = (self.trace_hash * 1_000_003 + number) & _HASH_MASK


def _tell(future: asyncio.Future[T], outcome: Any, error: Exception | None) -> None:
    if future.cancelled():
        return
    if error is not None:
        future.set_exception(error)
    else:
        future.set_result(outcome)
