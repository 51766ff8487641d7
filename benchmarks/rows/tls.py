"""The same fetch in plain text (by sendfile, on both brokers), by read and write (ours), and over TLS (encrypted)."""

from __future__ import annotations

from benchmarks.brokers.broker import Broker
from benchmarks.brokers.highwater import Highwater
from benchmarks.loads import child, raw_fetch
from benchmarks.rows.consume import fill
from benchmarks.rows.row import Metrics, Row, Stage

FULL_BYTES = 400_000_000


class CopyingHighwater(Highwater):
    is_copying = True


def measure(stage: Stage) -> Metrics:
    broker, total_bytes = stage.broker, stage.sized(FULL_BYTES, 4_000_000)
    with stage.topic() as topic:
        fill(broker, topic, total_bytes)
        metrics = fetch(broker, topic, total_bytes, "sendfile") | fetch(broker, topic, total_bytes, "TLS")
    return metrics | (without_sendfile(stage, total_bytes) if broker.side == "highwater" else {})


def without_sendfile(stage: Stage, total_bytes: int) -> Metrics:
    with CopyingHighwater(stage.broker.folder.parent / "copying") as copying:
        copying.create_topic("copied", 1)
        fill(copying, "copied", total_bytes)
        return fetch(copying, "copied", total_bytes, "read+write")


def fetch(broker: Broker, topic: str, total_bytes: int, way: str) -> Metrics:
    port = broker.tls_port if way == "TLS" else broker.port
    for bytes_each in (total_bytes // 2, total_bytes * 3 // 4):  # the first warms up
        timed = child.run(
            raw_fetch.fetch, port, broker.pid, topic, reader_count=1, bytes_each=bytes_each, is_tls=way == "TLS"
        )
    return {f"{way} {unit}": value for unit, value in timed.throughput().items()}


ROWS = (Row(key="tls", title="fetch 1 MB, 1 reader, raw: by sendfile, read and write, TLS", measure=measure),)
