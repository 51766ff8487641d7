"""Thousands of partitions at once: a few threads, in order, and one sync of what they share."""

from __future__ import annotations

import gc
from collections.abc import Sequence
from pathlib import Path
from uuid import UUID

import pytest

from broker_engine.clock import SystemClock
from broker_engine.log.config import LogConfig
from broker_engine.log.files import MemoryFiles
from broker_engine.log.partition_log import PartitionLog
from broker_engine.server.collector import collector_paused
from broker_engine.server.partitions import OPEN_CHUNK_SIZE, in_threads
from tests.broker_engine.broker_process import BrokerProcess
from tests.broker_engine.handlers.calls import batch_of, create, fetch, produce, values_of
from tests.broker_engine.raw_client import RawClient


async def test_results_come_in_the_order_of_their_items() -> None:
    def double(numbers: Sequence[int]) -> list[int]:
        return [number * 2 for number in numbers]

    numbers = list(range(OPEN_CHUNK_SIZE * 5 + 3))
    assert await in_threads(double, numbers) == [number * 2 for number in numbers]
    assert await in_threads(double, []) == []


def test_the_collector_is_as_it_was_after_a_pause_that_failed() -> None:
    @collector_paused()
    def fail() -> None:
        assert not gc.isenabled()
        raise ValueError("as planned")

    with pytest.raises(ValueError, match="as planned"):
        fail()
    assert gc.isenabled()
    gc.disable()  # as a simulation does
    try:
        with collector_paused():
            assert not gc.isenabled()
        assert not gc.isenabled()
    finally:
        gc.enable()


def test_a_directory_that_was_synced_for_all_is_not_synced_again() -> None:
    log = PartitionLog.open(MemoryFiles(), "tenants/acme/orders-0", LogConfig(), SystemClock(), topic_id=UUID(int=7))
    assert log.unsynced_parents() == ["tenants/acme", "tenants", ""]
    log.note_dir_synced("")
    log.note_dir_synced("tenants")
    job = log.flush_job()
    assert job is not None
    assert sorted(job.directories) == ["tenants/acme", "tenants/acme/orders-0"]


def test_many_partitions_outlive_a_stop_and_a_kill(tmp_path: Path) -> None:
    with BrokerProcess(tmp_path / "broker") as broker:
        with RawClient(broker.address()) as client:
            topic = create(client, partitions=200)
            assert produce(client, topic, batch_of(b"kept"), partition=150).error_code == 0
        for end in (broker.stop, broker.kill):
            end()
            broker.start()
            with RawClient(broker.address()) as client:
                assert values_of(fetch(client, topic, partition=150)) == [b"kept"]
                assert fetch(client, topic, partition=199).high_watermark == 0
        assert "201 partitions opened" in broker.log or "202 partitions opened" in broker.log
