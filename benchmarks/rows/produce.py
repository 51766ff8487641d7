"""Produce by librdkafka and by Kafka's Java client. Idempotent with acks=all, as both clients have it then."""

from __future__ import annotations

from benchmarks.bars import Bar, at_least, at_most
from benchmarks.loads import child, java_client, librdkafka
from benchmarks.rows.row import Metrics, Row, Stage

FULL_BYTES = {100: 200_000_000, 1_000: 800_000_000, 10_000: 800_000_000}
CPU_BARS = {100: 0.5, 1_000: 0.7, 10_000: 0.8}
SIZE_NAMES = {100: "100B", 1_000: "1KB", 10_000: "10KB"}
QUICK = {
    "produce-librdkafka-100B-1p-acks1",
    "produce-librdkafka-1KB-1p-acks1",
    "produce-librdkafka-1KB-16p-acksall",
    "produce-java-1KB-16p-acksall",
}


def row(
    client: str,
    record_bytes: int,
    partition_count: int,
    acks: str,
    *,
    codec: str = "none",
    durability: str = "page-cache",
    producer_count: int = 1,
    work: float = 1.0,
    bars: dict[str, Bar] | None = None,
) -> Row:
    def measure(stage: Stage) -> Metrics:
        share = work * (0.5 if client == "java" else 1.0)  # its JVM is slow enough to be timed well on less
        total_bytes = stage.sized(int(FULL_BYTES[record_bytes] * share), minimum=100 * record_bytes)
        named = {"record_bytes": record_bytes, "total_bytes": total_bytes, "acks": acks, "codec": codec}
        with stage.topic(partition_count, durability) as topic:
            if client == "java":
                timed = java_client.produce(stage.broker.bootstrap, stage.broker.pid, topic, **named)  # type: ignore[arg-type]
            else:
                named["producer_count"] = producer_count
                timed = child.run(librdkafka.produce, stage.broker.bootstrap, stage.broker.pid, topic, **named)
        return timed.throughput()

    key = f"produce-{client}-{SIZE_NAMES[record_bytes]}-{partition_count}p-acks{acks}"
    key += f"-{codec}" if codec != "none" else ""
    key += f"-{durability}-{producer_count}producers" if durability != "page-cache" else ""
    plural = "" if partition_count == 1 else "s"
    title = f"produce {SIZE_NAMES[record_bytes]}, {client}, {partition_count:,} partition{plural}, acks={acks}"
    title += f", {codec}" if codec != "none" else ""
    title += f", {durability}, {producer_count} producers" if durability != "page-cache" else ""
    main_bars = {"MB/s": at_least(1.3), "CPU s/GB": at_most(CPU_BARS[record_bytes])}
    return Row(
        key=key,
        title=title,
        measure=measure,
        bars=main_bars if bars is None else bars,
        is_quick=key in QUICK,
        is_client_bound=client == "java" or record_bytes == 100 or codec != "none",
    )


def fsync_beside_default() -> Row:
    """We flush before we answer, Kafka does not: what the promise costs."""

    def measure(stage: Stage) -> Metrics:
        total_bytes = stage.sized(FULL_BYTES[1_000], minimum=100_000)
        durability = "fsync" if stage.broker.side == "highwater" else "default"
        named = {"record_bytes": 1_000, "total_bytes": total_bytes, "acks": "all", "producer_count": 16}
        with stage.topic(16, durability) as topic:
            timed = child.run(librdkafka.produce, stage.broker.bootstrap, stage.broker.pid, topic, **named)
        return timed.throughput()

    title = "fsync beside Kafka's default: produce 1KB, librdkafka, 16 producers"
    return Row(key="fsync-beside-default", title=title, measure=measure, is_quick=True)


ROWS = (
    *(row(client, size, count, "1") for client in ("librdkafka", "java") for size in FULL_BYTES for count in (1, 16)),
    *(row("librdkafka", 1_000, 16, acks) for acks in ("0", "all")),
    *(row("java", size, 16, "all") for size in FULL_BYTES),
    row("librdkafka", 1_000, 16, "1", codec="lz4", bars={}),
    row("java", 1_000, 16, "1", codec="lz4", bars={}),
    row("librdkafka", 1_000, 1_000, "1", bars={}),
    row("librdkafka", 1_000, 16, "all", durability="fsync", producer_count=16, work=0.2, bars={"MB/s": at_least(3.0)}),
    fsync_beside_default(),
)
