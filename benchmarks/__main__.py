"""`make bench`: one broker under librdkafka, produce then consume; throughput, broker CPU and how the bytes left.

    python -m benchmarks [--megabytes 256] [--record-bytes 1000] [--rounds 3]

Apache Kafka stands beside it in the same run once the hot path is done; until then read the CPU column.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from confluent_kafka import OFFSET_BEGINNING, Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from benchmarks.broker import MeasuredBroker, Usage

MEGABYTE = 1_000_000
BATCH_RECORDS = 10_000


@dataclass(frozen=True, slots=True)
class Row:
    name: str
    megabytes_per_s: float
    broker_cpu_s_per_gb: float


def create_topic(bootstrap: str, topic: str, durability: str) -> None:
    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.create_topics([NewTopic(topic, 1, config={"ack.durability": durability})])[topic].result(timeout=30)


def produce(bootstrap: str, topic: str, count: int, record_bytes: int, acks: str) -> None:
    producer = Producer({"bootstrap.servers": bootstrap, "acks": acks, "linger.ms": 5, "batch.size": 1_000_000})
    value = bytes(record_bytes)
    for _ in range(count):
        while True:
            try:
                producer.produce(topic, value)
                break
            except BufferError:
                producer.poll(0.05)
    assert producer.flush(120) == 0


def consume(bootstrap: str, topic: str, count: int) -> None:
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "bench", "enable.auto.commit": False})
    consumer.assign([TopicPartition(topic, 0, OFFSET_BEGINNING)])
    seen = 0
    while seen < count:
        seen += len(consumer.consume(min(BATCH_RECORDS, count - seen), timeout=30))
    consumer.close()


def measure(broker: MeasuredBroker, name: str, total_bytes: int, work: object) -> Row:
    before, started = broker.usage(), time.perf_counter()
    work()  # type: ignore[operator]
    elapsed_s = time.perf_counter() - started
    used: Usage = broker.usage() - before
    row = Row(name, total_bytes / MEGABYTE / elapsed_s, used.cpu_s * 1_000 * MEGABYTE / total_bytes)
    print(f"   {row.name:<28} {row.megabytes_per_s:8.0f} MB/s {row.broker_cpu_s_per_gb:8.2f} CPU s/GB", flush=True)
    return row


def run_round(broker: MeasuredBroker, number: int, count: int, record_bytes: int) -> list[Row]:
    rows = []
    total_bytes = count * record_bytes
    for durability, acks in (("page-cache", "1"), ("page-cache", "all"), ("fsync", "all")):
        topic = f"bench-{number}-{durability}-{acks}"
        create_topic(broker.bootstrap, topic, durability)
        name = f"produce acks={acks} {durability}"
        rows.append(
            measure(
                broker, name, total_bytes, lambda t=topic, a=acks: produce(broker.bootstrap, t, count, record_bytes, a)
            )
        )
    rows.append(measure(broker, "consume", total_bytes, lambda: consume(broker.bootstrap, topic, count)))
    return rows


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--megabytes", type=int, default=256)
    parser.add_argument("--record-bytes", type=int, default=1_000)
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    count = arguments.megabytes * MEGABYTE // arguments.record_bytes
    rows: list[Row] = []
    with tempfile.TemporaryDirectory() as folder, MeasuredBroker(Path(folder)) as broker:
        for number in range(1, arguments.rounds + 1):
            size = f"{arguments.megabytes} MB of {arguments.record_bytes} B records"
            print(f"-- round {number} of {arguments.rounds}: {size}")
            rows += run_round(broker, number, count, arguments.record_bytes)
        print(f"-- medians; broker RSS {broker.rss_bytes() / MEGABYTE:.0f} MB")
    for name in dict.fromkeys(row.name for row in rows):
        mine = [row for row in rows if row.name == name]
        speed = statistics.median(row.megabytes_per_s for row in mine)
        cpu = statistics.median(row.broker_cpu_s_per_gb for row in mine)
        print(f"   {name:<28} {speed:8.0f} MB/s {cpu:8.2f} CPU s/GB")
    return 0


if __name__ == "__main__":
    sys.exit(main())
