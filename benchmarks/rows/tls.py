"""The same fetch in plain text (sendfile, on both brokers) and over TLS (copied and encrypted)."""

from __future__ import annotations

from benchmarks.loads import child, raw_fetch
from benchmarks.rows.consume import fill
from benchmarks.rows.row import Metrics, Row, Stage

FULL_BYTES = 400_000_000


def measure(stage: Stage) -> Metrics:
    broker, total_bytes = stage.broker, stage.sized(FULL_BYTES, 4_000_000)
    metrics: Metrics = {}
    with stage.topic() as topic:
        fill(broker, topic, total_bytes)
        for name, port in (("plain", broker.port), ("TLS", broker.tls_port)):
            for bytes_each in (total_bytes // 2, total_bytes * 3 // 4):  # the first warms up
                timed = child.run(
                    raw_fetch.fetch, port, broker.pid, topic, reader_count=1, bytes_each=bytes_each,
                    is_tls=name == "TLS",
                )  # fmt: skip
            metrics |= {f"{name} {unit}": value for unit, value in timed.throughput().items()}
    return metrics


ROWS = (Row(key="tls", title="fetch 1 MB, 1 reader, plain and over TLS, raw", measure=measure),)
