"""What a producer of one-record requests feels of its neighbours: a cold reader of 10 GB, a compaction."""

from __future__ import annotations

import time

from benchmarks.bars import value_at_most
from benchmarks.loads import child, paced, raw_fetch, raw_produce
from benchmarks.loads.child import Child
from benchmarks.loads.latency import percentiles
from benchmarks.rows.consume import fill, forget_pages
from benchmarks.rows.row import Metrics, Row, Stage

REQUESTS_PER_S = 500
QUIET_S = 10.0
COLD_BYTES = 10_000_000_000
COMPACTED_BYTES = 200_000_000
WAIT_S_MAX = 120.0


def cold_reader(stage: Stage) -> Metrics:
    """One reader goes through all that is stored, none of it in memory, while the producer goes on."""
    broker, total_bytes = stage.broker, stage.sized(COLD_BYTES, 100_000_000)
    with stage.topic() as stored, stage.topic() as other:
        fill(broker, stored, total_bytes)
        forget_pages(broker.folder)
        quiet_ms = _feel(stage, other, max(2.0, QUIET_S * stage.scale))
        forget_pages(broker.folder)
        with Child(
            raw_fetch.fetch, broker.port, broker.pid, stored, reader_count=1, bytes_each=total_bytes * 9 // 10
        ) as reader:  # fmt: skip
            felt_ms: list[float] = []
            while not reader.is_done:
                felt_ms += _feel(stage, other, 2.0)
            read = reader.result()
    return {
        **percentiles(felt_ms),
        "p99 ms alone": percentiles(quiet_ms)["p99 ms"],
        "p99 to alone": percentiles(felt_ms)["p99 ms"] / percentiles(quiet_ms)["p99 ms"],
        "read MB/s": read.throughput()["MB/s"],
    }


def compaction(stage: Stage) -> Metrics:
    """100-byte records under few keys, compacted while the producer writes to another topic."""
    broker, configs = stage.broker, {"cleanup.policy": "compact", "segment.bytes": str(16 << 20)}
    with stage.topic() as other, stage.topic(configs=configs) as compacted:
        quiet_ms = _feel(stage, other, max(2.0, QUIET_S * stage.scale))
        child.run(
            raw_produce.keyed_batches, broker.port, broker.pid, compacted,
            total_bytes=stage.sized(COMPACTED_BYTES, 40_000_000),
        )  # fmt: skip
        before_bytes, felt_ms, deadline = _log_bytes(stage, compacted), list[float](), time.monotonic() + WAIT_S_MAX
        while _log_bytes(stage, compacted) > before_bytes // 2:
            assert time.monotonic() < deadline, "nothing was compacted"
            felt_ms += _feel(stage, other, 2.0)
    return {
        **percentiles(felt_ms),
        "longest ms": max(felt_ms),
        "longest ms alone": max(quiet_ms),
        "over 50 ms of 1,000": 1000 * sum(latency_ms > 50 for latency_ms in felt_ms) / len(felt_ms),
    }


def _feel(stage: Stage, topic: str, seconds: float) -> list[float]:
    return child.run(paced.produce, stage.broker.port, topic, requests_per_s=REQUESTS_PER_S, seconds=seconds)


def _log_bytes(stage: Stage, topic: str) -> int:
    return sum(path.stat().st_size for path in stage.broker.folder.rglob(f"{topic}-0/*.log"))


ROWS = (
    Row(
        key="cold-reader",
        title="one-record requests while another reads 10 GB cold",
        measure=cold_reader,
        bars={"p99 to alone": value_at_most(2.0)},
    ),
    Row(
        key="compaction",
        title="one-record requests while another topic is compacted",
        measure=compaction,
        bars={"longest ms": value_at_most(50.0)},
        sides=("highwater",),
    ),
)
