"""Group commit: one flush in flight per log, what comes meanwhile rides the next, an error is final."""

from __future__ import annotations

import asyncio
import errno
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field

from broker_engine.clock import SystemClock
from broker_engine.errors import BrokerError, ErrorCode
from broker_engine.server.flush import THREAD_COUNT, CrowdFlush, FlushManager
from broker_engine.server.syncfs_rule import LOGS_MIN, SyncfsRule
from tests.broker_engine.net.test_sockets import until


@dataclass(eq=False)
class SlowJob:
    end_offset: int
    may_finish: threading.Event

    run_count: int = 0

    def descriptors(self) -> list[int]:
        return []

    def note_error(self, error: OSError) -> None:
        raise AssertionError("threads run these")

    def run(self) -> None:
        self.run_count += 1
        assert self.may_finish.wait(10)


@dataclass(eq=False)
class FakeLog:
    """A log that counts; its disk is as slow as the test wants."""

    end_offset: int = 0
    is_broken: bool = False
    is_quick: bool = False
    is_clean: bool = False
    flushed_to: list[int] = field(default_factory=list)
    jobs: list[SlowJob] = field(default_factory=list)

    def flush_job(self) -> SlowJob | None:
        if self.is_clean:
            return None
        self.jobs.append(SlowJob(self.end_offset, threading.Event()))
        if self.is_quick:
            self.jobs[-1].may_finish.set()
        return self.jobs[-1]

    def on_flushed(self, job: SlowJob) -> None:
        if self.is_broken:
            raise BrokerError(ErrorCode.KAFKA_STORAGE_ERROR, "the disk failed")
        self.flushed_to.append(job.end_offset)


def make_manager() -> tuple[FlushManager[SlowJob], list[Exception]]:
    failures: list[Exception] = []
    return FlushManager(SystemClock(), failures.append), failures


async def test_requests_during_a_flush_share_the_next_one() -> None:
    manager, failures = make_manager()
    log = FakeLog()
    log.end_offset = 1
    manager.request(log)
    await until(lambda: len(log.jobs) == 1)
    for log.end_offset in range(2, 101):
        manager.request(log)
    log.jobs[0].may_finish.set()
    await until(lambda: len(log.jobs) == 2)
    log.jobs[1].may_finish.set()
    await manager.drain()
    assert log.flushed_to == [1, 100]
    assert manager.flush_count == 2
    assert failures == []
    manager.close()


async def test_requests_of_one_turn_of_the_loop_share_one_flush() -> None:
    manager, _ = make_manager()
    log = FakeLog(is_quick=True)
    for log.end_offset in range(1, 101):
        manager.request(log)
    await manager.drain()
    assert log.flushed_to == [100]
    manager.close()


async def test_who_waits_for_the_last_flush_does_not_wait_for_a_log_that_has_nothing_to_flush() -> None:
    manager, _ = make_manager()
    manager.request(FakeLog(is_clean=True))
    async with asyncio.timeout(10):
        await manager.drain()
    assert manager.flush_count == 0
    manager.close()


async def test_logs_do_not_wait_for_each_other() -> None:
    manager, _ = make_manager()
    slow, quick = FakeLog(), FakeLog(end_offset=7)
    manager.request(slow)
    manager.request(quick)
    await until(lambda: bool(quick.jobs))
    quick.jobs[0].may_finish.set()
    await until(lambda: bool(quick.flushed_to))
    assert slow.flushed_to == []
    slow.jobs[0].may_finish.set()
    await manager.drain()
    manager.close()


async def test_since_when_the_oldest_flush_runs_is_known() -> None:
    manager, _ = make_manager()
    first, second = FakeLog(), FakeLog()
    assert manager.oldest_begun_ms() is None
    before_ms = SystemClock().monotonic_ms()
    manager.request(first)
    await until(lambda: bool(first.jobs))
    begun_ms = manager.oldest_begun_ms()
    assert begun_ms is not None
    assert begun_ms >= before_ms
    manager.request(second)
    await until(lambda: bool(second.jobs))
    second.jobs[0].may_finish.set()
    await until(lambda: bool(second.flushed_to))
    assert manager.oldest_begun_ms() == begun_ms
    first.jobs[0].may_finish.set()
    await manager.drain()
    assert manager.oldest_begun_ms() is None
    manager.close()


async def test_after_an_error_nothing_is_synced_again() -> None:
    manager, failures = make_manager()
    log = FakeLog(is_broken=True)
    manager.request(log)
    await until(lambda: bool(log.jobs))
    manager.request(log)
    log.jobs[0].may_finish.set()
    await manager.drain()
    assert [str(failure) for failure in failures] == ["KAFKA_STORAGE_ERROR: the disk failed"]
    manager.request(log)
    assert len(log.jobs) == 1
    manager.close()


@dataclass
class WholeDisk:
    """Flushes many logs at once, or fails at it; notes how many there were."""

    error: OSError | None = None
    may_finish: threading.Event = field(default_factory=threading.Event)
    crowds: list[int] = field(default_factory=list)

    def run(self, jobs: Sequence[SlowJob]) -> OSError | None:
        self.crowds.append(len(jobs))
        assert self.may_finish.wait(10)
        for job in jobs if self.error else ():
            job.run()
        return self.error


def crowd_manager(disk: WholeDisk) -> FlushManager[SlowJob]:
    rule = SyncfsRule("always", owns_file_system=True, thread_count=THREAD_COUNT)
    return FlushManager(SystemClock(), lambda _: None, crowd=CrowdFlush(rule, disk.run))


async def wait_behind_slow_ones(manager: FlushManager[SlowJob], count: int) -> tuple[list[FakeLog], list[FakeLog]]:
    """As many flushes as there are threads, and a crowd that waits for one of them to end."""
    slow = [FakeLog() for _ in range(THREAD_COUNT)]
    crowd = [FakeLog(end_offset=9, is_quick=True) for _ in range(count)]
    for logs in (slow, crowd):
        for log in logs:
            manager.request(log)
        await until(lambda: all(log.jobs for log in slow))
    return slow, crowd


def let_go(logs: Sequence[FakeLog]) -> None:
    for log in logs:
        for job in log.jobs:
            job.may_finish.set()


async def test_a_crowd_is_flushed_at_once_and_late_comers_ride_the_next() -> None:
    disk = WholeDisk()
    manager = crowd_manager(disk)
    slow, crowd = await wait_behind_slow_ones(manager, LOGS_MIN)
    assert all(not log.jobs for log in crowd), "what is dirty is asked when its turn comes, so that more of it rides"
    let_go(slow)
    await until(lambda: disk.crowds == [LOGS_MIN])
    late = [FakeLog(end_offset=9) for _ in range(LOGS_MIN + 8)]
    for log in [*late, crowd[0]]:
        manager.request(log)
    assert all(not log.jobs for log in late)
    disk.may_finish.set()
    await manager.drain()
    assert disk.crowds == [LOGS_MIN, LOGS_MIN + 9]
    assert all(log.flushed_to == [9] for log in [*late, *crowd[1:]])
    assert crowd[0].flushed_to == [9, 9]
    assert (manager.flush_count, manager.syncfs_count) == (THREAD_COUNT + 2 * LOGS_MIN + 9, 2)
    manager.close()


async def test_few_that_wait_are_flushed_one_by_one() -> None:
    disk = WholeDisk()
    manager = crowd_manager(disk)
    slow, few = await wait_behind_slow_ones(manager, LOGS_MIN - 1)
    let_go(slow)
    await manager.drain()
    assert all(log.flushed_to == [9] for log in few)
    assert disk.crowds == []
    manager.close()


async def test_a_failed_sync_of_all_runs_each_log_once_and_is_the_last_of_its_kind() -> None:
    disk = WholeDisk(error=OSError(errno.EIO, "somebody's page was lost"))
    manager = crowd_manager(disk)
    slow, crowd = await wait_behind_slow_ones(manager, LOGS_MIN)
    let_go(slow)
    disk.may_finish.set()
    await manager.drain()
    assert [job.run_count for log in crowd for job in log.jobs] == [1] * LOGS_MIN
    assert all(log.flushed_to == [9] for log in crowd), "the lost page was another's: they go on"
    slow, again = await wait_behind_slow_ones(manager, LOGS_MIN)
    let_go(slow)
    await manager.drain()
    assert all(log.flushed_to == [9] for log in again)
    assert disk.crowds == [LOGS_MIN]
    manager.close()
