"""Many partitions: create them, leave them idle, write to all of them, stop and start again."""

from __future__ import annotations

import re
import time

from benchmarks import process
from benchmarks.bars import Bar, at_most, value_at_least, value_at_most
from benchmarks.loads import child, raw_produce
from benchmarks.loads.result import Timed
from benchmarks.rows.row import Metrics, Row, Stage

BATCH_BYTES = 16_000
PARTITIONS_PER_REQUEST = 16
FEW = 16
IDLE_S = 60.0
"""What comes every few seconds, and once a minute, is in it as often as it should be."""
FLUSHED_S = 65.0
"""Within a minute we flush what was written: that belongs to the writing."""
SETTLE_S_MAX = 180
SETTLED_CPU_SHARE = 0.1


def row(partition_count: int, *, is_quick: bool) -> Row:
    def measure(stage: Stage) -> Metrics:
        metrics = {"create s": stage.broker.create_topic("many", partition_count)}
        if stage.broker.side == "highwater":  # against our own 16; Kafka takes minutes to make its logs
            metrics |= walk(stage, "many", partition_count)
            if not is_quick:
                metrics |= walk_by_fsync(stage, partition_count)
        metrics |= idle(stage)
        stage.broker.stop()
        metrics |= flushed_by_syncfs(stage)
        stage.broker.start()
        return metrics | {"clean start s": stage.broker.start_s}

    return Row(
        key=f"partitions-{partition_count}",
        title=f"{partition_count:,} partitions, raw 16 KB batches, 16 partitions a request",
        measure=measure,
        bars=LARGE_BARS if partition_count >= 10_000 else SMALL_BARS,
        is_quick=is_quick,
        quick_sides=("highwater",),
    )


SMALL_BARS: dict[str, Bar] = {"create s": value_at_most(2.0), "of its own 16": value_at_least(0.8)}
LARGE_BARS: dict[str, Bar] = {
    "of its own 16": value_at_least(0.8),
    "of its own 16, fsync": value_at_least(0.5),
    "clean start s": at_most(0.15),
    "idle RSS MB": at_most(0.3),
    "idle CPU %": at_most(1.0),
}


def idle(stage: Stage) -> Metrics:
    time.sleep(FLUSHED_S * stage.scale)
    settle(stage.broker.pid)
    before, started = process.usage(stage.broker.pid), time.perf_counter()
    time.sleep(max(2.0, IDLE_S * stage.scale))
    used, elapsed_s = process.usage(stage.broker.pid) - before, time.perf_counter() - started
    return {"idle RSS MB": stage.broker.rss_bytes / 1e6, "idle CPU %": 100 * used.cpu_s / elapsed_s}


def settle(pid: int) -> None:
    """Until a second passes almost without work: Kafka makes its logs long after it said that they are there."""
    for _ in range(SETTLE_S_MAX):
        before = process.usage(pid)
        time.sleep(1.0)
        if (process.usage(pid) - before).cpu_s < SETTLED_CPU_SHARE:
            return


def walk(stage: Stage, many: str, partition_count: int) -> Metrics:
    """The first walk meets logs that were never written; then the same driver on 16 and on all."""
    with stage.topic(FEW) as few:
        first = drive(stage, many, partition_count, partition_count * BATCH_BYTES)
        total_bytes = max(stage.sized(800_000_000), 2 * partition_count * BATCH_BYTES)
        on_few, on_many = drive(stage, few, FEW, total_bytes), drive(stage, many, partition_count, total_bytes)
    return {
        "first walk MB/s": first.throughput()["MB/s"],
        "MB/s on 16": on_few.throughput()["MB/s"],
        "MB/s": on_many.throughput()["MB/s"],
        "CPU s/GB": on_many.throughput()["CPU s/GB"],
        "of its own 16": on_many.throughput()["MB/s"] / on_few.throughput()["MB/s"],
    }


def walk_by_fsync(stage: Stage, partition_count: int) -> Metrics:
    """Flushed before each answer, on whatever file system --data-dir is. As above, not the first walk."""
    with stage.topic(FEW, "fsync") as few, stage.topic(partition_count, "fsync") as many:
        total_bytes = 2 * partition_count * BATCH_BYTES
        drive(stage, many, partition_count, partition_count * BATCH_BYTES)
        on_few, on_many = drive(stage, few, FEW, total_bytes), drive(stage, many, partition_count, total_bytes)
    rate = on_many.throughput()["MB/s"]
    return {"MB/s, fsync": rate, "of its own 16, fsync": rate / on_few.throughput()["MB/s"]}


def flushed_by_syncfs(stage: Stage) -> Metrics:
    """Of all flushes, in percent: one syncfs stands for many logs, on a file system of its own."""
    found = re.findall(r"(\d+) flushes of logs, (\d+) of them by", stage.broker.output.read_text())
    return {"flushes by syncfs %": 100 * int(found[-1][1]) / max(1, int(found[-1][0]))} if found else {}


def drive(stage: Stage, topic: str, partition_count: int, total_bytes: int) -> Timed:
    return child.run(
        raw_produce.large_batches, stage.broker.port, stage.broker.pid, topic, connection_count=4,
        partition_count=partition_count, batch_bytes=BATCH_BYTES, total_bytes=total_bytes,
        partitions_per_request=PARTITIONS_PER_REQUEST, acks=-1,
    )  # fmt: skip
