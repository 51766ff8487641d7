"""End to end: the send time rides in the record, the reader subtracts. Two processes, one system-wide clock."""

from __future__ import annotations

import struct
import time

from confluent_kafka import Consumer, Producer, TopicPartition

_SENT = struct.Struct(">q")
RECORD_BYTES = 100
IDLE_TIMEOUT_S = 30.0


def send_at(bootstrap: str, topic: str, records_per_s: int, seconds: float, acks: str = "1") -> float:
    """`linger.ms=0`; returns the rate that was reached. Records that are late are sent at once, not left out."""
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 0, "acks": acks, "log_level": 3})
    filling = bytes(RECORD_BYTES - _SENT.size)
    producer.list_topics(topic, timeout=30)
    count, started = int(records_per_s * seconds), time.monotonic()
    for number in range(count):
        wait_s = started + number / records_per_s - time.monotonic()
        if wait_s > 0:
            time.sleep(wait_s)
        producer.produce(topic, _SENT.pack(time.monotonic_ns()) + filling)
        producer.poll(0)
    elapsed_s = time.monotonic() - started
    assert producer.flush(60) == 0, "records were not acknowledged in time"
    return count / elapsed_s


def receive(bootstrap: str, topic: str, count: int, skip_count: int) -> list[float]:
    """Milliseconds of every record but the first `skip_count`, in order of arrival."""
    consumer = Consumer(
        {"bootstrap.servers": bootstrap, "group.id": "bench", "enable.auto.commit": False, "log_level": 3}
    )
    consumer.assign([TopicPartition(topic, 0, 0)])
    latencies_ms: list[float] = []
    while len(latencies_ms) < count:
        message = consumer.poll(IDLE_TIMEOUT_S)
        assert message is not None, f"only {len(latencies_ms)} of {count} records came"
        assert message.error() is None, message.error()
        (sent_ns,) = _SENT.unpack_from(message.value() or b"")
        latencies_ms.append((time.monotonic_ns() - sent_ns) / 1e6)
    consumer.close()
    return latencies_ms[skip_count:]


def percentiles(latencies_ms: list[float]) -> dict[str, float]:
    ordered = sorted(latencies_ms)
    shares = {"p50 ms": 0.5, "p99 ms": 0.99, "p99.9 ms": 0.999}
    return {name: ordered[round((len(ordered) - 1) * share)] for name, share in shares.items()}
