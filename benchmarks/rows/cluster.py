"""Three brokers, replication factor 3, acks=all: throughput, what it costs all three, latency, fail-over."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from benchmarks.bars import Bar, at_least, at_most, value_at_most
from benchmarks.brokers import Cluster
from benchmarks.loads import child, java_client, latency, librdkafka
from benchmarks.loads.child import Child
from benchmarks.rows.row import Metrics, Row, Stage
from tests.chaos.failover import Timing, percentile

PARTITION_COUNT = 16
FULL_BYTES = {100: 60_000_000, 1_000: 300_000_000, 10_000: 300_000_000}
SIZE_NAMES = {100: "100B", 1_000: "1KB", 10_000: "10KB"}
WARM_UP_BYTES = 150_000_000
RECORDS_PER_S = 1_000
LATENCY_SECONDS = 20.0
WARM_UP_SHARE = 0.25
KILL_COUNT = 5
"""Of each sort and round; `make chaos-long` has twenty, on our side."""


@dataclass(frozen=True, slots=True)
class Promise:
    """What an acknowledgement means in a row, on each side."""

    key: str
    title: str
    durability: str
    rate_bar: float


PAGE_CACHE = Promise("page-cache", "page cache", "page-cache", 3.0)
DEFAULTS = Promise("fsync", "our fsync beside Kafka's default", "default", 1.5)
"""Kafka leaves the disk to the operating system."""
FSYNC = Promise("fsync-both", "fsync on both sides", "fsync", 1.5)


def warm_up(stage: Stage, rows: Sequence[Row]) -> None:
    """For the JVMs; ours have nothing to warm, and get the same.

    By each client that is measured: brokers of Kafka's that have served large batches only begin to compile when the
    Java client's small ones come, and the same row gave 14 MB/s at the beginning of a round and 27 at its end.
    """
    bootstrap, pid = stage.broker.bootstrap, stage.broker.pid
    total_bytes = stage.sized(WARM_UP_BYTES, 1_000_000)
    with stage.topic(PARTITION_COUNT) as topic:
        child.run(librdkafka.produce, bootstrap, pid, topic, record_bytes=1_000, total_bytes=total_bytes, acks="all")
    if any(row.is_client_bound for row in rows):  # those of the Java client
        with stage.topic(PARTITION_COUNT) as topic:
            java_client.produce(bootstrap, pid, topic, record_bytes=1_000, total_bytes=2 * total_bytes, acks="all")


def produce_row(client: str, record_bytes: int, promise: Promise) -> Row:
    def measure(stage: Stage) -> Metrics:
        share = 0.6 if client == "java" else 1.0  # it is slow, but on less its own compiler would be timed
        total_bytes = stage.sized(int(FULL_BYTES[record_bytes] * share), minimum=100 * record_bytes)
        named = {"record_bytes": record_bytes, "total_bytes": total_bytes, "acks": "all"}
        with stage.topic(PARTITION_COUNT, promise.durability) as topic:
            if client == "java":
                timed = java_client.produce(stage.broker.bootstrap, stage.broker.pid, topic, **named)  # type: ignore[arg-type]
            else:
                timed = child.run(librdkafka.produce, stage.broker.bootstrap, stage.broker.pid, topic, **named)
        return timed.throughput()

    size = SIZE_NAMES[record_bytes]
    return Row(
        key=f"cluster-produce-{client}-{size}-{promise.key}",
        title=f"three brokers: produce {size}, {client}, 16 partitions, acks=all, {promise.title}",
        measure=measure,
        bars={"MB/s": at_least(promise.rate_bar), "CPU s/GB": at_most(0.3)},
        is_quick=record_bytes == 1_000 and client == "librdkafka" and promise is not FSYNC,
        is_client_bound=client == "java",
    )


def latency_row(durability: str) -> Row:
    def measure(stage: Stage) -> Metrics:
        seconds = max(4.0, LATENCY_SECONDS * stage.scale)
        count, bootstrap = int(RECORDS_PER_S * seconds), stage.broker.bootstrap
        with (
            stage.topic(1, durability) as topic,
            Child(latency.receive, bootstrap, topic, count, int(count * WARM_UP_SHARE)) as reader,
            Child(latency.send_at, bootstrap, topic, RECORDS_PER_S, seconds, "all") as writer,
        ):
            reached_per_s = writer.result()
            return {**latency.percentiles(reader.result()), "records/s": reached_per_s}

    return Row(
        key=f"cluster-latency-{durability}",
        title=f"three brokers: end to end at 1,000 records/s, acks=all, linger 0, {durability}",
        measure=measure,
        bars={"p99 ms": value_at_most(50.0)},
        is_quick=durability == "default",
    )


def failover_row(*, is_controller: bool, bar: Bar) -> Row:
    def measure(stage: Stage) -> Metrics:
        assert isinstance(stage.broker, Cluster)
        with stage.topic(3, "default") as topic:
            timing = Timing(stage.broker, tuple((topic, number) for number in range(3)))
            taken_s = [timing.kill_leader(is_controller=is_controller) for _ in range(stage.sized(KILL_COUNT, 2))]
        return {"p50 ms": percentile(taken_s, 0.5) * 1_000, "p95 ms": percentile(taken_s, 0.95) * 1_000}

    who = "is the controller" if is_controller else "is not the controller"
    return Row(
        key=f"cluster-failover-{'controller' if is_controller else 'leader'}",
        title=f"three brokers: SIGKILL of a leader that {who}, to the first acked produce",
        measure=measure,
        bars={"p95 ms": bar},
        is_quick=not is_controller,
    )


ROWS = (
    *(
        produce_row(client, size, promise)
        for client in ("librdkafka", "java")
        for promise in (PAGE_CACHE, DEFAULTS)
        for size in FULL_BYTES
    ),
    *(produce_row(client, 1_000, FSYNC) for client in ("librdkafka", "java")),
    latency_row("page-cache"),
    latency_row("default"),
    failover_row(is_controller=False, bar=value_at_most(1_500.0)),
    failover_row(is_controller=True, bar=value_at_most(2_000.0)),
)
