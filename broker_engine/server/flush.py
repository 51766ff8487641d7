"""Group commit: at most one flush in flight per log; whatever is appended meanwhile rides the next one.

Flushes are run by the kernel, four at a time (flush_ring.py); where it does not let us, and where there is more to do
than to sync files, by as many threads (fdatasync frees the GIL). Those that are asked for within one turn of the loop
begin together. Where a crowd of logs waits, and the rule finds it worth it, one `syncfs` serves them all; who comes
meanwhile waits for the next. An error of a log is final: the kernel forgets what it could not write, so the same file
is never synced again, and the broker's only data directory being offline, the broker stops (as Kafka does).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import Generic, Protocol, TypeVar

from broker_engine.clock import Clock
from broker_engine.errors import BrokerError
from broker_engine.log.file_seam import Files
from broker_engine.log.flush import FlushJob as LogFlushJob
from broker_engine.log.flush import run_together
from broker_engine.server.flush_ring import FlushRing, RingJob
from broker_engine.server.syncfs_rule import SyncfsRule

logger = logging.getLogger(__name__)

THREAD_COUNT = 4
_CROWD_MAX = 500
"""Each log of a crowd has its files pinned, and answers on the loop, in one go."""


class FlushJob(RingJob, Protocol):
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


@dataclass(frozen=True, slots=True)
class CrowdFlush(Generic[Job]):
    """How many logs are flushed at once, and when."""

    rule: SyncfsRule
    run: Callable[[Sequence[Job]], OSError | None]
    """In a thread. Each job is run whatever it answers; an error says that it had to be one by one."""


def crowd_flush(files: Files, setting: str) -> CrowdFlush[LogFlushJob]:
    """By `log.flush.syncfs`, and by whether the files have a file system to themselves."""
    owns_file_system = setting == "auto" and files.owns_file_system()
    rule = SyncfsRule(setting, owns_file_system=owns_file_system, thread_count=THREAD_COUNT)
    return CrowdFlush(rule, partial(run_together, files))


def flush_ring(files: Files, setting: str) -> FlushRing | None:
    """By `log.flush.io.uring`, and by whether the kernel lets us."""
    ring = files.sync_ring(THREAD_COUNT) if setting == "auto" else None
    logger.info("logs are flushed by %s", "threads" if ring is None else "the kernel (io_uring)")
    return None if ring is None else FlushRing(ring, jobs_max=THREAD_COUNT)


Flushed = list[tuple[Flushable[Job], Job]]


class FlushManager(Generic[Job]):
    def __init__(
        self,
        clock: Clock,
        on_failure: Callable[[Exception], None],
        *,
        crowd: CrowdFlush[Job] | None = None,
        ring: FlushRing | None = None,
    ) -> None:
        self._clock = clock
        self._on_failure = on_failure
        self._crowd = crowd
        self._ring = ring
        self._threads = ThreadPoolExecutor(THREAD_COUNT, thread_name_prefix="flush")
        self._waiting: dict[Flushable[Job], None] = {}
        self._in_flight: dict[Flushable[Job], bool] = {}
        """With True where it is wanted once more."""
        self._begun_ms: dict[Flushable[Job], int] = {}
        """Of each job in flight, by its first log; the oldest first."""
        self._busy_count = 0
        self._is_about_to_begin = False
        self._is_crowd_in_flight = False
        self._idle = asyncio.Event()
        self._has_failed = False
        self.flush_count = 0
        self.flush_ms_total = 0
        self.ring_count = self.syncfs_count = self.crowd_count = 0

    def request(self, log: Flushable[Job]) -> None:
        """Bring everything that is in the log now to the disk, soon."""
        if log in self._in_flight:
            self._in_flight[log] = True
        elif not self._has_failed:
            self._waiting[log] = None
            self._begin_soon()

    def oldest_begun_ms(self) -> int | None:
        """Since when the oldest flush in flight runs, by the monotonic clock."""
        return next(iter(self._begun_ms.values()), None)

    async def drain(self) -> None:
        """Until no flush is in flight or asked for."""
        while self._in_flight or self._waiting:
            self._idle.clear()
            await self._idle.wait()

    def close(self) -> None:
        self._threads.shutdown(wait=True)
        if self._ring is not None:
            self._ring.close()
        logger.info(
            "%d flushes of logs, %d of them by the kernel, %d by %d syncfs",
            self.flush_count, self.ring_count, self.crowd_count, self.syncfs_count,
        )  # fmt: skip

    def _begin_soon(self) -> None:
        """When this turn of the loop is over: what else is asked for or has ended in it goes along."""
        if not self._is_about_to_begin:
            self._is_about_to_begin = True
            asyncio.get_running_loop().call_soon(self._begin_what_fits)

    def _begin_what_fits(self) -> None:
        self._is_about_to_begin = False
        while self._waiting and self._busy_count < THREAD_COUNT and not self._is_crowd_in_flight:
            crowd = self._crowd
            if crowd is not None and crowd.rule.is_better(len(self._waiting), self._clock.monotonic_ms()):
                self._begin_crowd(crowd)
            else:
                self._begin_one()
        if self._ring is not None:
            self._ring.begin()
        self._note_idle()  # of those that waited none may have had anything to flush

    def _note_idle(self) -> None:
        if not self._in_flight and not self._waiting:
            self._idle.set()

    def _begin_one(self) -> None:
        for log, job in self._take(1):
            self._note_begun([(log, job)])
            if self._ring is None or not self._ring.take(job, partial(self._on_ring_done, log, job)):
                self._begin([(log, job)], job.run, self._on_one_done)

    def _begin_crowd(self, crowd: CrowdFlush[Job]) -> None:
        taken = self._take(_CROWD_MAX)
        jobs = [job for _, job in taken]
        self._is_crowd_in_flight = bool(jobs)
        if jobs:
            self._note_begun(taken)
            self._begin(taken, lambda: crowd.run(jobs), lambda *done: self._on_crowd_done(crowd, *done))

    def _take(self, count_max: int) -> Flushed[Job]:
        """The logs that wait longest and have something to flush."""
        logs = list(islice(self._waiting, count_max))
        for log in logs:
            del self._waiting[log]
        return [(log, job) for log in logs if (job := log.flush_job()) is not None]

    def _note_begun(self, taken: Flushed[Job]) -> None:
        self._busy_count += 1
        self._in_flight |= dict.fromkeys((log for log, _ in taken), False)
        self._begun_ms[taken[0][0]] = self._clock.monotonic_ms()

    def _begin(
        self,
        taken: Flushed[Job],
        run: Callable[[], OSError | None],
        on_done: Callable[[Flushed[Job], OSError | None, int], None],
    ) -> None:
        future = asyncio.get_running_loop().run_in_executor(self._threads, self._timed, run)
        future.add_done_callback(lambda done: on_done(taken, *done.result()))

    def _timed(self, run: Callable[[], OSError | None]) -> tuple[OSError | None, int]:
        """In the thread, so that it is the disk's time and not the loop's."""
        started_ms = self._clock.monotonic_ms()
        error = run()
        return error, self._clock.monotonic_ms() - started_ms

    def _on_ring_done(self, log: Flushable[Job], job: Job) -> None:
        """The loop's time is in this too: the kernel does not say how long it took."""
        self.ring_count += 1
        self._on_one_done([(log, job)], None, self._clock.monotonic_ms() - self._begun_ms[log])

    def _on_one_done(self, taken: Flushed[Job], _: OSError | None, elapsed_ms: int) -> None:
        if self._crowd is not None:
            self._crowd.rule.on_one_log(elapsed_ms)
        self._finish(taken, elapsed_ms)

    def _on_crowd_done(
        self, crowd: CrowdFlush[Job], taken: Flushed[Job], error: OSError | None, elapsed_ms: int
    ) -> None:
        self._is_crowd_in_flight = False
        self.syncfs_count += 1
        self.crowd_count += len(taken)
        if error is None:
            crowd.rule.on_syncfs(len(taken), elapsed_ms, self._clock.monotonic_ms())
        else:
            crowd.rule.on_error()
        self._finish(taken, elapsed_ms)

    def _finish(self, taken: Flushed[Job], elapsed_ms: int) -> None:
        self._busy_count -= 1
        del self._begun_ms[taken[0][0]]
        self.flush_count += len(taken)
        self.flush_ms_total += elapsed_ms
        for log, job in taken:
            self._report(log, job)
            if self._in_flight.pop(log) and not self._has_failed:
                self._waiting[log] = None
        if self._waiting:
            self._begin_soon()
        self._note_idle()

    def _report(self, log: Flushable[Job], job: Job) -> None:
        try:
            log.on_flushed(job)
        except BrokerError as error:
            self._has_failed = True
            self._waiting.clear()
            self._on_failure(error)
