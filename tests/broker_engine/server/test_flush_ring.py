"""Flushes that the kernel runs: done when every file is, tried again where it has no room, an error is the log's."""

from __future__ import annotations

import errno
import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import cast
from uuid import UUID

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from broker_engine.clock import SystemClock
from broker_engine.errors import BrokerError
from broker_engine.log.config import LogConfig
from broker_engine.log.files import DiskFiles, MemoryFiles
from broker_engine.log.flush import FlushJob
from broker_engine.log.replica_log import ReplicaLog
from broker_engine.log.sync_ring import SyncRing
from broker_engine.records.batch import parse_header
from broker_engine.server.flush import FlushManager, flush_ring
from broker_engine.server.flush_ring import FlushRing
from tests.broker_engine.broker_process import BrokerProcess
from tests.broker_engine.handlers.calls import batch_of
from tests.broker_engine.net.test_sockets import until


@dataclass(eq=False)
class Job:
    files: list[int]
    errors: list[OSError] = field(default_factory=list)
    done_count: int = 0

    def descriptors(self) -> list[int]:
        return self.files

    def note_error(self, error: OSError) -> None:
        self.errors.append(error)

    def on_done(self) -> None:
        self.done_count += 1


class Kernel:
    """Takes and ends what the test says."""

    def __init__(self) -> None:
        self.event = os.eventfd(0, os.EFD_NONBLOCK)
        self.room = 100
        self.error: OSError | None = None
        self.taken: list[tuple[int, int]] = []
        self.results: list[tuple[int, OSError | None]] = []

    def fileno(self) -> int:
        return self.event

    def begin(self, wanted: Sequence[tuple[int, int]]) -> int:
        if self.error is not None:
            raise self.error
        taken = wanted[: self.room]
        self.taken += taken
        return len(taken)

    def end(self, descriptor: int, error: OSError | None = None) -> None:
        [token] = [token for each, token in self.taken if each == descriptor]
        self.results.append((token, error))
        os.eventfd_write(self.event, 1)

    def ended(self) -> list[tuple[int, OSError | None]]:
        os.eventfd_read(self.event)
        results, self.results = self.results, []
        return results

    def close(self) -> None:
        os.close(self.event)


def ring_of(kernel: Kernel) -> FlushRing:
    return FlushRing(cast(SyncRing, kernel), jobs_max=4)


async def test_a_job_is_done_when_all_of_its_files_are() -> None:
    kernel = Kernel()
    ring, job = ring_of(kernel), Job([7, 8])
    assert ring.take(job, job.on_done)
    assert kernel.taken == [], "all that is taken in one turn goes by one call"
    ring.begin()
    kernel.end(8)
    await until(lambda: not kernel.results)
    assert job.done_count == 0
    kernel.end(7)
    await until(lambda: job.done_count == 1)
    assert job.errors == []
    ring.close()


async def test_an_error_of_one_file_is_the_jobs_once_the_others_have_ended() -> None:
    kernel = Kernel()
    ring, job, other = ring_of(kernel), Job([7, 8]), Job([9])
    assert ring.take(job, job.on_done)
    assert ring.take(other, other.on_done)
    ring.begin()
    kernel.end(7, OSError(errno.EIO, "a page was lost"))
    kernel.end(9)
    await until(lambda: other.done_count == 1)
    assert (job.done_count, other.errors) == (0, [])
    kernel.end(8)
    await until(lambda: job.done_count == 1)
    assert [error.errno for error in job.errors] == [errno.EIO]
    ring.close()


async def test_what_the_kernel_has_no_room_for_is_asked_for_again() -> None:
    kernel = Kernel()
    kernel.room = 1
    ring, first, second = ring_of(kernel), Job([7]), Job([8])
    for job in (first, second):
        assert ring.take(job, job.on_done)
    ring.begin()
    assert [descriptor for descriptor, _ in kernel.taken] == [7]
    await until(lambda: len(kernel.taken) == 2)
    kernel.end(7)
    kernel.end(8)
    await until(lambda: (first.done_count, second.done_count) == (1, 1))
    ring.close()


async def test_a_kernel_that_takes_nothing_any_more_fails_the_job() -> None:
    kernel = Kernel()
    kernel.error = OSError(errno.EBADF, "gone")
    ring, job = ring_of(kernel), Job([7, 8])
    assert ring.take(job, job.on_done)
    ring.begin()
    assert job.done_count == 1
    assert [error.errno for error in job.errors] == [errno.EBADF, errno.EBADF]
    ring.close()


@pytest.mark.parametrize("files", [[], list(range(9))], ids=["more to do than to sync", "many files"])
async def test_what_is_for_a_thread_is_not_taken(files: list[int]) -> None:
    ring, job = ring_of(Kernel()), Job(files)
    assert not ring.take(job, job.on_done)
    ring.close()


# --- with real logs


class Flushed:
    """A log as the flush manager sees it."""

    def __init__(self, directory: Path) -> None:
        self.log = ReplicaLog.open(DiskFiles(directory), "orders-0", LogConfig(), SystemClock(), topic_id=UUID(int=7))

    def append(self) -> None:
        batch = memoryview(batch_of(b"a record"))
        self.log.append(batch, parse_header(batch), leader_epoch=0, log_append_time_ms=None)

    def flush_job(self) -> FlushJob | None:
        return self.log.flush_job()

    def on_flushed(self, job: FlushJob) -> None:
        self.log.on_flushed(job)


def real_ring() -> FlushRing:
    ring = flush_ring(DiskFiles(), "auto")
    if ring is None:
        pytest.skip("this kernel, or the container around it, lends no io_uring")
    return ring


def manager_with_ring() -> tuple[FlushManager[FlushJob], list[Exception]]:
    failures: list[Exception] = []
    return FlushManager(SystemClock(), failures.append, ring=real_ring()), failures


async def test_a_new_log_takes_a_thread_once_and_the_kernel_from_then_on(tmp_path: Path) -> None:
    manager, failures = manager_with_ring()
    flushed = Flushed(tmp_path)
    for count in range(1, 6):
        flushed.append()
        manager.request(flushed)
        await manager.drain()
        assert flushed.log.durable_end_offset == count
    assert (manager.flush_count, manager.ring_count) == (5, 4), "the first one has names and epochs to keep"
    assert failures == []
    manager.close()


async def test_a_file_that_the_kernel_cannot_sync_takes_the_log_offline(tmp_path: Path) -> None:
    manager, failures = manager_with_ring()
    flushed = Flushed(tmp_path)
    flushed.append()
    manager.request(flushed)
    await manager.drain()
    flushed.append()
    reading, writing = os.pipe()

    class Unsyncable:
        def pin(self) -> None: ...
        def unpin(self) -> None: ...
        def fileno(self) -> int:
            return writing

    job = flushed.flush_job()
    assert job is not None
    for handle in job.handles:
        handle.unpin()
    job.handles = [Unsyncable()]  # type: ignore[list-item]
    flushed.flush_job = lambda: job  # type: ignore[method-assign]
    manager.request(flushed)
    await manager.drain()
    assert flushed.log.is_offline
    assert flushed.log.durable_end_offset == 1, "what was not synced is not durable"
    assert [type(failure) for failure in failures] == [BrokerError]
    for descriptor in (reading, writing):
        os.close(descriptor)
    manager.close()


@pytest.mark.parametrize(("setting", "by"), [("auto", "the kernel"), ("never", "threads")])
def test_a_broker_keeps_what_it_acknowledged_whoever_flushes(setting: str, by: str, tmp_path: Path) -> None:
    if setting == "auto":
        real_ring().close()  # skips where there is none
    broker = BrokerProcess(tmp_path / "broker", settings={"log.flush.io.uring": setting})
    with broker:
        producer = Producer({"bootstrap.servers": broker.address(), "acks": "all"})
        for number in range(20):
            producer.produce("orders", b"%d" % number)
            assert producer.flush(30) == 0
        broker.kill()
        assert f"logs are flushed by {by}" in broker.log
        broker.start()
        reader = Consumer({"bootstrap.servers": broker.address(), "group.id": "auditors"})
        assert reader.get_watermark_offsets(TopicPartition("orders", 0), timeout=10) == (0, 20)
        reader.close()


def test_threads_flush_where_the_setting_or_the_files_say_so() -> None:
    assert flush_ring(DiskFiles(), "never") is None
    assert flush_ring(MemoryFiles(), "auto") is None
