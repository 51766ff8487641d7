"""Group commit: at most one flush in flight per log; whatever is appended meanwhile rides the next one.

fdatasync runs on four threads (it frees the GIL). An error is final: the kernel forgets what it could not write, so
the same file is never synced again, and the broker's only data directory being offline, the broker stops (as Kafka
does). Left out: `syncfs` for many logs at once (contracts.md section 8); `log.flush.syncfs` is read with it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from broker_engine.clock import Clock
from broker_engine.errors import BrokerError

THREAD_COUNT = 4


class FlushJob(Protocol):
    def run(self) -> None: ...


Job = TypeVar("Job", bound=FlushJob)


class Flushable(Protocol[Job]):
    """A log that has something to bring to the disk."""

    def flush_job(self) -> Job | None:
        """What is dirty now, or None. Asked on the loop."""
        ...

    def on_flushed(self, job: Job) -> None:
        """The job was run. Called on the loop; BrokerError where the disk failed."""
        ...


@dataclass(slots=True)
class _State:
    is_wanted_again: bool = False


class FlushManager(Generic[Job]):
    def __init__(self, clock: Clock, on_failure: Callable[[Exception], None]) -> None:
        self._clock = clock
        self._on_failure = on_failure
        self._threads = ThreadPoolExecutor(THREAD_COUNT, thread_name_prefix="flush")
        self._in_flight: dict[Flushable[Job], _State] = {}
        self._idle = asyncio.Event()
        self._has_failed = False
        self.flush_count = 0
        self.flush_ms_total = 0

    def request(self, log: Flushable[Job]) -> None:
        """Bring everything that is in the log now to the disk, soon."""
        state = self._in_flight.get(log)
        if state is not None:
            state.is_wanted_again = True
        else:
            self._begin(log)

    async def drain(self) -> None:
        """Until no flush is in flight or asked for."""
        while self._in_flight:
            self._idle.clear()
            await self._idle.wait()

    def close(self) -> None:
        self._threads.shutdown(wait=True)

    def _begin(self, log: Flushable[Job]) -> None:
        job = log.flush_job() if not self._has_failed else None
        if job is None:
            return
        self._in_flight[log] = _State()
        started_ms = self._clock.monotonic_ms()
        future = asyncio.get_running_loop().run_in_executor(self._threads, job.run)
        future.add_done_callback(lambda done: self._on_done(log, job, done, started_ms))

    def _on_done(self, log: Flushable[Job], job: Job, done: asyncio.Future[None], started_ms: int) -> None:
        state = self._in_flight.pop(log)
        self.flush_count += 1
        self.flush_ms_total += self._clock.monotonic_ms() - started_ms
        try:
            done.result()
            log.on_flushed(job)
        except BrokerError as error:
            self._has_failed = True
            self._on_failure(error)
        if state.is_wanted_again:
            self.request(log)
        if not self._in_flight:
            self._idle.set()
