"""Raw pipelined requests: one record each, idempotent, acks=all; and large batches. Prebuilt frames, cheap client."""

from __future__ import annotations

from benchmarks.bars import Bar, at_least, at_most
from benchmarks.loads import child, raw_produce
from benchmarks.rows.row import Metrics, Row, Stage

RECORD_BYTES = 100
FULL_REQUESTS = {1: 60_000, 16: 120_000, 100: 120_000}
BATCH_NAMES = {10_000: "10KB", 100_000: "100KB", 1_000_000: "1MB"}


def one_record(connection_count: int, requests_bar: float) -> Row:
    partition_count = 1 if connection_count == 1 else 16

    def measure(stage: Stage) -> Metrics:
        with stage.topic(partition_count) as topic:
            timed = child.run(
                raw_produce.one_record_requests, stage.broker.port, stage.broker.pid, topic,
                connection_count=connection_count, partition_count=partition_count, record_bytes=RECORD_BYTES,
                request_count=stage.sized(FULL_REQUESTS[connection_count], minimum=10 * connection_count),
            )  # fmt: skip
        return timed.requests()

    plural = "" if connection_count == 1 else "s"
    shape = f"{connection_count} connection{plural}, {partition_count} partition{plural}"
    return Row(
        key=f"requests-{connection_count}",
        title=f"one-record requests, {shape}",
        measure=measure,
        bars={"requests/s": at_least(requests_bar), "CPU us/request": at_most(0.5)},
        is_quick=True,
    )


def batches(batch_bytes: int) -> Row:
    def measure(stage: Stage) -> Metrics:
        with stage.topic(4) as topic:
            timed = child.run(
                raw_produce.large_batches, stage.broker.port, stage.broker.pid, topic, connection_count=4,
                partition_count=4, batch_bytes=batch_bytes, total_bytes=stage.sized(800_000_000, 4_000_000),
            )  # fmt: skip
        return timed.throughput()

    bars: dict[str, Bar] = {"MB/s": at_least(1.0)}
    title = f"batches of {BATCH_NAMES[batch_bytes]}, 4 connections, 4 partitions, acks=1"
    key = f"batches-{BATCH_NAMES[batch_bytes]}"
    return Row(key=key, title=title, measure=measure, bars=bars, is_quick=batch_bytes > 10_000)


def fsync_one_record(partition_count: int) -> Row:
    """Both flush before they answer: we by group commit, Kafka by flush.messages=1."""

    def measure(stage: Stage) -> Metrics:
        with stage.topic(partition_count, "fsync") as topic:
            timed = child.run(
                raw_produce.one_record_requests, stage.broker.port, stage.broker.pid, topic, connection_count=16,
                partition_count=partition_count, record_bytes=1_000, request_count=stage.sized(12_000, minimum=160),
            )  # fmt: skip
        return timed.requests()

    shape = f"{partition_count} partition{'' if partition_count == 1 else 's'}"
    return Row(
        key=f"fsync-requests-{partition_count}p",
        title=f"fsync (Kafka: flush.messages=1), 1KB requests, 16 producers, {shape}",
        measure=measure,
        bars={"requests/s": at_least(3.0)},
        is_quick=partition_count == 1,
    )


ROWS = (one_record(1, 2.0), one_record(16, 1.5), one_record(100, 1.5), *(batches(size) for size in BATCH_NAMES))
FSYNC_ROWS = (fsync_one_record(1), fsync_one_record(16))
