"""flush.messages and flush.ms: what nobody waits for reaches the disk all the same."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from uuid import UUID

from broker_engine.clock import SystemClock
from broker_engine.config import BrokerConfig, TopicConfig
from broker_engine.log.files import MemoryFiles
from broker_engine.log.replica_log import ReplicaLog
from broker_engine.names import ROOT, Name
from broker_engine.partition.core import PartitionCore
from broker_engine.server.local_partition import LocalPartition
from broker_engine.server.topic_settings import log_config, partition_settings
from tests.broker_engine.handlers.calls import batch_of


def topic_config(broker_settings: dict[str, str] | None = None, **overrides: str) -> TopicConfig:
    values = {"ack.durability": "page-cache", **{name.replace("_", "."): value for name, value in overrides.items()}}
    return TopicConfig.resolve(values, BrokerConfig.load({}, broker_settings or {}), replication_factor=1)


def partition_of(config: TopicConfig, request_flush: Callable[[LocalPartition], None]) -> LocalPartition:
    log = ReplicaLog.open(MemoryFiles(), "orders-0", log_config(config), SystemClock(), topic_id=UUID(int=7))
    core = PartitionCore(
        leader_epoch=0,
        replicas=(1,),
        isr=(1,),
        log_start_offset=0,
        log_end_offset=0,
        durable_end_offset=0,
        settings=partition_settings(config, BrokerConfig.load({}, {})),
    )
    return LocalPartition(
        name=Name(ROOT, "orders"),
        index=0,
        topic_id=UUID(int=7),
        log=log,
        core=core,
        leader_id=1,
        config=config,
        clock=SystemClock(),
        request_flush=request_flush,
        on_changed=lambda local: None,
    )


def flush(local: LocalPartition) -> None:
    job = local.flush_job()
    assert job is not None
    job.run()
    local.on_flushed(job)


def append(local: LocalPartition, count: int = 1) -> None:
    for _ in range(count):
        local.append(memoryview(batch_of(b"x")), produce_version=9, acks=1)


def test_without_rules_nothing_is_flushed() -> None:
    flushed: list[LocalPartition] = []
    append(partition_of(topic_config(), flushed.append), 100)
    assert flushed == []


def test_every_so_many_records() -> None:
    flushed: list[LocalPartition] = []

    def flush_now(local: LocalPartition) -> None:
        flushed.append(local)
        flush(local)

    append(partition_of(topic_config(flush_messages="10"), flush_now), 35)
    assert len(flushed) == 3


def test_the_brokers_interval_is_the_topics_default() -> None:
    flushed: list[LocalPartition] = []
    append(partition_of(topic_config({"log.flush.interval.messages": "5"}), flushed.append), 5)
    assert len(flushed) == 1


async def test_after_so_much_time() -> None:
    asked = asyncio.Event()
    local = partition_of(topic_config(flush_ms="20"), lambda _: asked.set())
    append(local)
    await asyncio.wait_for(asked.wait(), 10)
    flush(local)
    asked.clear()
    append(local)
    await asyncio.wait_for(asked.wait(), 10)


async def test_a_new_time_holds_for_what_waits_already() -> None:
    asked = asyncio.Event()
    local = partition_of(topic_config(flush_ms="3600000"), lambda _: asked.set())
    append(local)
    config = topic_config(flush_ms="1")
    local.configure(config, partition_settings(config, BrokerConfig.load({}, {})))
    await asyncio.wait_for(asked.wait(), 10)
