"""Reading: hot and cold, by librdkafka and by the raw reader; and while another client writes."""

from __future__ import annotations

import os
from pathlib import Path

from benchmarks.bars import Bar, at_least, at_most, value_at_most
from benchmarks.brokers import Broker
from benchmarks.loads import child, java_client, librdkafka, raw_fetch, raw_produce
from benchmarks.loads.child import Child
from benchmarks.rows.row import Metrics, Row, Stage

RECORD_BYTES = 1_000
BATCH_BYTES = 100_000
FULL_BYTES = 1_000_000_000
BARS: dict[str, Bar] = {"MB/s": at_least(1.0), "CPU s/GB": at_most(0.6)}
DROP_CACHES = Path("/proc/sys/vm/drop_caches")


def fill(broker: Broker, topic: str, total_bytes: int, partition_count: int = 1) -> None:
    """At least `total_bytes` of 1 KB records in 100 KB batches."""
    child.run(
        raw_produce.large_batches, broker.port, broker.pid, topic, connection_count=2,
        partition_count=partition_count, batch_bytes=BATCH_BYTES, total_bytes=total_bytes,
    )  # fmt: skip


def forget_pages(folder: Path) -> None:
    """Cold: what the broker stored is on disk and nowhere else. As root for the whole machine, else file by file."""
    os.sync()
    if os.access(DROP_CACHES, os.W_OK):
        DROP_CACHES.write_text("1\n")
        return
    for path in folder.rglob("*.log"):
        with path.open("rb") as file:
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def by_librdkafka(*, is_cold: bool) -> Row:
    def measure(stage: Stage) -> Metrics:
        broker, total_bytes = stage.broker, stage.sized(FULL_BYTES, 2_000_000)
        with stage.topic() as topic:
            fill(broker, topic, total_bytes)
            if is_cold:
                forget_pages(broker.folder)
            count = total_bytes // RECORD_BYTES
            timed = child.run(
                librdkafka.consume, broker.bootstrap, broker.pid, topic, partition_count=1, record_count=count
            )
        return timed.throughput()

    state = "cold" if is_cold else "hot"
    title = f"consume 1KB {state}, librdkafka"
    key = f"consume-librdkafka-{state}"
    return Row(key=key, title=title, measure=measure, bars=BARS, is_quick=True, is_client_bound=True)


def by_java() -> Row:
    """Kafka's ConsumerPerformance: the group protocol and the offsets' topic are part of it."""

    def measure(stage: Stage) -> Metrics:
        broker, total_bytes = stage.broker, stage.sized(FULL_BYTES, 2_000_000)
        with stage.topic() as topic:
            fill(broker, topic, total_bytes)
            timed = java_client.consume(
                broker.bootstrap, broker.pid, topic, record_count=total_bytes // RECORD_BYTES, record_bytes=RECORD_BYTES
            )
        return timed.throughput()

    title = "consume 1KB hot, Java's ConsumerPerformance"
    return Row(key="consume-java-hot", title=title, measure=measure, bars=BARS, is_client_bound=True)


def by_raw_reader(*, is_cold: bool) -> Row:
    def measure(stage: Stage) -> Metrics:
        broker, total_bytes = stage.broker, stage.sized(FULL_BYTES, 4_000_000)
        with stage.topic() as topic:
            fill(broker, topic, total_bytes)
            if is_cold:
                forget_pages(broker.folder)
            timed = child.run(
                raw_fetch.fetch, broker.port, broker.pid, topic, reader_count=1 if is_cold else 2,
                bytes_each=total_bytes * 3 // 4,
            )  # fmt: skip
        return timed.throughput()

    state = "cold, 1 reader" if is_cold else "hot, 2 readers"
    key = f"fetch-raw-{'cold' if is_cold else 'hot'}"
    return Row(key=key, title=f"fetch 1 MB {state}, raw", measure=measure, bars=BARS, is_quick=not is_cold)


def together() -> Row:
    """One producer and one consumer at once; the reader stays near the tail, so nothing should come from disk."""

    def measure(stage: Stage) -> Metrics:
        broker, total_bytes = stage.broker, stage.sized(400_000_000, 1_000_000)
        count = total_bytes // RECORD_BYTES
        with (
            stage.topic() as topic,
            Child(
                librdkafka.consume, broker.bootstrap, broker.pid, topic, partition_count=1, record_count=count
            ) as reader,
            Child(
                librdkafka.produce, broker.bootstrap, broker.pid, topic, record_bytes=RECORD_BYTES,
                total_bytes=total_bytes,
            ) as writer,
        ):  # fmt: skip
            written, read = writer.result(), reader.result()
        return {
            **written.throughput(),
            "consumed MB/s": read.throughput()["MB/s"],
            "disk read MB": read.used.disk_read_bytes / 1e6,
        }

    bars = {"disk read MB": value_at_most(0.0)}
    title = "produce and consume 1KB together, librdkafka"
    return Row(key="together", title=title, measure=measure, bars=bars, is_quick=True, is_client_bound=True)


ROWS = (
    *(by_librdkafka(is_cold=is_cold) for is_cold in (False, True)),
    by_java(),
    *(by_raw_reader(is_cold=is_cold) for is_cold in (False, True)),
    together(),
)
