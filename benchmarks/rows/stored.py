"""Does a full disk slow us down? Produce, tail read and old read with 1 GB and with 30 GB stored. Ours only."""

from __future__ import annotations

from confluent_kafka import Consumer, TopicPartition

from benchmarks.bars import value_at_least
from benchmarks.loads import child, raw_fetch, raw_produce
from benchmarks.loads.result import Timed
from benchmarks.rows.consume import forget_pages
from benchmarks.rows.row import Metrics, Row, Stage

LITTLE_BYTES, MUCH_BYTES = 1_000_000_000, 30_000_000_000
BATCH_BYTES, PARTITIONS = 100_000, 4
PROBE_BYTES = 300_000_000


def measure(stage: Stage) -> Metrics:
    with stage.topic(PARTITIONS) as topic:
        append(stage, topic, stage.sized(LITTLE_BYTES, 8_000_000))
        with_little = probe(stage, topic)
        append(stage, topic, stage.sized(MUCH_BYTES - LITTLE_BYTES, 16_000_000))
        with_much = probe(stage, topic)
    metrics = {f"{name} MB/s, 30 GB": rate for name, rate in with_much.items()}
    return metrics | {f"{name}, of 1 GB": rate / with_little[name] for name, rate in with_much.items()}


def append(stage: Stage, topic: str, total_bytes: int) -> Timed:
    return child.run(
        raw_produce.large_batches, stage.broker.port, stage.broker.pid, topic, connection_count=4,
        partition_count=PARTITIONS, batch_bytes=BATCH_BYTES, total_bytes=total_bytes,
    )  # fmt: skip


def probe(stage: Stage, topic: str) -> dict[str, float]:
    """All three start from a cold cache but the tail read, which follows the produce that wrote it."""
    forget_pages(stage.broker.folder)
    tail_offset = end_offset(stage, topic)
    written = append(stage, topic, stage.sized(PROBE_BYTES, 8_000_000))
    each_bytes = written.total_bytes // PARTITIONS // 2
    tail = read(stage, topic, tail_offset, each_bytes)
    old = read(stage, topic, 0, each_bytes)
    return {"produce": mb_per_s(written), "tail read": mb_per_s(tail), "old read": mb_per_s(old)}


def end_offset(stage: Stage, topic: str) -> int:
    consumer = Consumer({"log_level": 3, "bootstrap.servers": stage.broker.bootstrap, "group.id": "bench"})
    end = consumer.get_watermark_offsets(TopicPartition(topic, 0), timeout=30)[1]
    consumer.close()
    return int(end)


def read(stage: Stage, topic: str, offset: int, bytes_each: int) -> Timed:
    return child.run(
        raw_fetch.fetch, stage.broker.port, stage.broker.pid, topic, reader_count=1, bytes_each=bytes_each,
        start_offset=offset,
    )  # fmt: skip


def mb_per_s(timed: Timed) -> float:
    return timed.throughput()["MB/s"]


ROWS = (
    Row(
        key="stored",
        title="30 GB stored against 1 GB",
        measure=measure,
        bars={f"{name}, of 1 GB": value_at_least(0.95) for name in ("produce", "tail read", "old read")},
        sides=("highwater",),
    ),
)
