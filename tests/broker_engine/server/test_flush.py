"""Group commit: one flush in flight per log, what comes meanwhile rides the next, an error is final."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field

from broker_engine.clock import SystemClock
from broker_engine.errors import BrokerError, ErrorCode
from broker_engine.server.flush import FlushManager
from tests.broker_engine.net.test_sockets import until


@dataclass(eq=False)
class SlowJob:
    end_offset: int
    may_finish: threading.Event

    def run(self) -> None:
        assert self.may_finish.wait(10)


@dataclass(eq=False)
class FakeLog:
    """A log that counts; its disk is as slow as the test wants."""

    end_offset: int = 0
    is_broken: bool = False
    flushed_to: list[int] = field(default_factory=list)
    jobs: list[SlowJob] = field(default_factory=list)

    def flush_job(self) -> SlowJob | None:
        self.jobs.append(SlowJob(self.end_offset, threading.Event()))
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
    for log.end_offset in range(1, 101):
        manager.request(log)
    assert len(log.jobs) == 1
    log.jobs[0].may_finish.set()
    await until(lambda: len(log.jobs) == 2)
    log.jobs[1].may_finish.set()
    await manager.drain()
    assert log.flushed_to == [1, 100]
    assert manager.flush_count == 2
    assert failures == []
    manager.close()


async def test_logs_do_not_wait_for_each_other() -> None:
    manager, _ = make_manager()
    slow, quick = FakeLog(), FakeLog(end_offset=7)
    manager.request(slow)
    manager.request(quick)
    quick.jobs[0].may_finish.set()
    await until(lambda: bool(quick.flushed_to))
    assert slow.flushed_to == []
    slow.jobs[0].may_finish.set()
    await manager.drain()
    manager.close()


async def test_after_an_error_nothing_is_synced_again() -> None:
    manager, failures = make_manager()
    log = FakeLog(is_broken=True)
    manager.request(log)
    manager.request(log)
    log.jobs[0].may_finish.set()
    await manager.drain()
    assert [str(failure) for failure in failures] == ["KAFKA_STORAGE_ERROR: the disk failed"]
    manager.request(log)
    assert len(log.jobs) == 1
    manager.close()
