"""The compactor on real logs: what is due is compacted while the log serves, what is not is left alone."""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Iterable
from pathlib import Path
from uuid import UUID

import pytest

from broker_engine.clock import Clock, SystemRandomness
from broker_engine.config import BrokerConfig, TopicConfig
from broker_engine.log.config import LogConfig
from broker_engine.log.files import DiskFiles
from broker_engine.log.memory_files import MemoryFiles
from broker_engine.metadata.image import EMPTY_IMAGE
from broker_engine.names import ROOT, Name
from broker_engine.partition.core import AckDurability, PartitionCore
from broker_engine.records.builder import NewRecord, build_batch
from broker_engine.server.compactor import CLEANER_OFFSETS, Compactor
from broker_engine.server.local_partition import LocalPartition
from broker_engine.server.pacer import Pacer
from broker_engine.server.partitions import Partitions, SavedOffsets
from tests.broker_engine.log.harness import LogHarness
from tests.broker_engine.log.test_compaction import hostile_batch
from tests.broker_engine.server.one_replica import OneReplica

RATE = "log.cleaner.io.max.bytes.per.second"
CONFIG = LogConfig(is_compacting=True, is_deleting=False, segment_bytes=1 << 20, min_cleanable_dirty_ratio=0)


class Held(Partitions):
    """With partitions that no image gave it."""

    def __init__(self, config: BrokerConfig, clock: Clock, locals_: Iterable[LocalPartition]) -> None:
        super().__init__(
            node_id=config.node_id,
            files=MemoryFiles(),
            clock=clock,
            randomness=SystemRandomness(),
            config=config,
            request_flush=lambda local: None,
            saved=SavedOffsets(),
        )
        self._locals = list(locals_)

    def all(self) -> Iterable[LocalPartition]:
        return self._locals


class CompactedPartition:
    def __init__(self, root: Path, name: str) -> None:
        self.harness = LogHarness(DiskFiles(root / name), CONFIG)
        self.name = name

    def local(self, *, is_flushed: bool = True) -> LocalPartition:
        """As the broker has it: the high watermark at the end, on disk or (page-cache topics) not yet."""
        log = self.harness.log
        if is_flushed and log.durable_end_offset < log.log_end_offset:
            self.harness.flush()
        core = PartitionCore(
            leader_epoch=0,
            replicas=(1,),
            isr=(1,),
            log_start_offset=log.log_start_offset,
            log_end_offset=log.log_end_offset,
            durable_end_offset=log.log_end_offset,
        )
        local = LocalPartition(
            name=Name(ROOT, self.name),
            index=0,
            topic_id=UUID(int=1),
            log=log,
            core=core,
            leader_id=1,
            config=TopicConfig.resolve({}, BrokerConfig.load({}, {}, "development"), replication_factor=1),
            clock=self.harness.clock,
            request_flush=lambda partition: None,
            on_changed=lambda partition: None,
        )
        log.config = CONFIG
        return local

    def put(self, key: bytes, count: int) -> None:
        for number in range(count):
            self.harness.append_batch(build_batch([NewRecord(1000, key, b"%d" % number)]))
        self.harness.log.roll()

    def offsets(self) -> list[int]:
        return [record.offset for record in self.harness.records()]


def compactor_of(
    root: Path, *held: CompactedPartition, bytes_per_s_max: int = 1 << 30, is_flushed: bool = True
) -> Compactor:
    config, clock = BrokerConfig.load({RATE: str(bytes_per_s_max)}), held[0].harness.clock
    partitions = Held(config, clock, [each.local(is_flushed=is_flushed) for each in held])
    return Compactor(partitions, DiskFiles(root), clock, config)


async def test_logs_are_compacted_and_how_far_is_remembered(tmp_path: Path) -> None:
    orders = CompactedPartition(tmp_path, "orders")
    orders.put(b"a", 5)
    await compactor_of(tmp_path, orders).compact_all()
    assert orders.offsets() == [4]
    assert (tmp_path / CLEANER_OFFSETS).read_text() == "0\n1\norders 0 5\n"
    orders.harness.log.clean_end_offset = 0  # as after a restart
    again = compactor_of(tmp_path, orders)
    await again.compact_all()
    assert again.run_count == 0, "nothing new was written"


async def test_what_is_not_on_disk_yet_is_left_alone(tmp_path: Path) -> None:
    orders = CompactedPartition(tmp_path, "orders")
    orders.put(b"a", 5)
    await compactor_of(tmp_path, orders, is_flushed=False).compact_all()
    assert orders.offsets() == [0, 1, 2, 3, 4]


def page_cache_replica() -> OneReplica:
    """A key's old value, and its new one in a transaction, all on disk; and then the marker, which is not."""
    replica = OneReplica(CONFIG, AckDurability.PAGE_CACHE)
    replica.send(1, b"old", key=b"a", is_plain=True)
    replica.local.log.roll()
    replica.send(9, b"new", key=b"a")
    replica.local.log.roll()
    replica.local.request_flush()
    replica.flush()
    replica.end(9, is_commit=True)
    return replica


def compactor_of_one(root: Path, replica: OneReplica) -> Compactor:
    config = BrokerConfig.load({})
    return Compactor(Held(config, replica.clock, [replica.local]), DiskFiles(root), replica.clock, config)


async def test_a_value_outlives_the_power_if_the_marker_of_the_next_one_does_not(tmp_path: Path) -> None:
    replica = page_cache_replica()
    await compactor_of_one(tmp_path, replica).compact_all()
    replica.lose_power_and_start()
    assert replica.committed_values() == [b"old"]


async def test_a_marker_is_brought_to_the_disk_for_compaction_to_count_on_it(tmp_path: Path) -> None:
    replica = page_cache_replica()
    compactor = compactor_of_one(tmp_path, replica)
    await compactor.compact_all()
    replica.flush()
    await compactor.compact_all()
    replica.lose_power_and_start()
    assert replica.committed_values() == [b"new"]


async def test_a_log_that_cannot_be_compacted_is_counted_and_does_not_keep_the_others_from_it(tmp_path: Path) -> None:
    hostile, orders = CompactedPartition(tmp_path, "hostile"), CompactedPartition(tmp_path, "orders")
    hostile.harness.append_batch(hostile_batch())
    hostile.harness.log.roll()
    orders.put(b"a", 3)
    compactor = compactor_of(tmp_path, hostile, orders)
    for _ in range(3):
        await compactor.compact_all()
    assert orders.offsets() == [2]
    assert (compactor.uncleanable_count, bool(hostile.harness.log.uncleanable)) == (1, True)


async def test_appends_and_reads_go_on_during_a_slow_compaction(tmp_path: Path) -> None:
    orders = CompactedPartition(tmp_path, "orders")
    orders.put(b"a", 200)
    task = asyncio.create_task(compactor_of(tmp_path, orders, bytes_per_s_max=50_000).compact_all())
    longest_s, appended = 0.0, 0
    loop = asyncio.get_running_loop()
    while not task.done():
        started = loop.time()
        await asyncio.sleep(0)
        orders.harness.append(b"meanwhile")
        appended += 1
        longest_s = max(longest_s, loop.time() - started)
        await asyncio.sleep(0.001)
    await task
    assert appended > 20
    assert longest_s < 0.25, "the bar is 50 ms; a machine that runs other tests may take its time"
    assert orders.offsets() == [199, *range(200, 200 + appended)]


async def test_a_stop_in_the_middle_leaves_the_log_as_it_was(tmp_path: Path) -> None:
    orders = CompactedPartition(tmp_path, "orders")
    orders.put(b"a", 300)
    folder = next((tmp_path / "orders").rglob("*.log")).parent
    names = sorted(path.name for path in folder.iterdir())
    compactor = compactor_of(tmp_path, orders, bytes_per_s_max=10_000)
    task = asyncio.create_task(compactor.compact_all())
    await asyncio.sleep(0)
    assert compactor.run_count == 1, "a thread is at work"
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert sorted(path.name for path in folder.iterdir()) == names
    assert orders.offsets() == list(range(300))
    orders.harness.log.close()


@pytest.mark.parametrize(
    ("given", "changed", "rate"),
    [
        ({}, {}, 32 << 20),
        ({RATE: "1000000"}, {}, 1_000_000),
        ({RATE: "1.7976931348623157E308"}, {"": {RATE: "2.5E6"}}, 2_500_000),
        ({}, {"": {RATE: "2000"}, "1": {RATE: "3000"}, "2": {RATE: "4000"}}, 3000),
    ],
)
async def test_the_rate_is_the_brokers_and_may_be_changed_while_it_runs(
    tmp_path: Path, given: dict[str, str], changed: dict[str, dict[str, str]], rate: int
) -> None:
    orders, rates = CompactedPartition(tmp_path, "orders"), list[int]()
    orders.put(b"a", 3)
    config, clock = BrokerConfig.load(given), orders.harness.clock
    partitions = Held(config, clock, [orders.local()])

    def make_pacer(bytes_per_s_max: int) -> Pacer:
        rates.append(bytes_per_s_max)
        return Pacer(1 << 30)

    compactor = Compactor(partitions, DiskFiles(tmp_path), clock, config, make_pacer=make_pacer)
    await partitions.open_missing(EMPTY_IMAGE, dataclasses.replace(EMPTY_IMAGE, broker_configs=changed))
    await compactor.compact_all()
    assert rates == [rate]
