"""End-to-end latency at a fixed rate, linger 0, one partition; the first seconds are left out."""

from __future__ import annotations

from benchmarks.bars import Bar, at_most, value_at_most
from benchmarks.loads import latency
from benchmarks.loads.child import Child
from benchmarks.rows.row import Metrics, Row, Stage

SECONDS = 15.0
WARM_UP_SHARE = 0.2


def row(records_per_s: int, bars: dict[str, Bar]) -> Row:
    def measure(stage: Stage) -> Metrics:
        seconds = max(2.0, SECONDS * stage.scale)
        count = int(records_per_s * seconds)
        bootstrap = stage.broker.bootstrap
        with (
            stage.topic() as topic,
            Child(latency.receive, bootstrap, topic, count, int(count * WARM_UP_SHARE)) as reader,
            Child(latency.send_at, bootstrap, topic, records_per_s, seconds) as writer,
        ):
            reached_per_s = writer.result()
            return {**latency.percentiles(reader.result()), "records/s": reached_per_s}

    title = f"end to end at {records_per_s:,} records/s, linger 0"
    key = f"latency-{records_per_s}"
    return Row(key=key, title=title, measure=measure, bars=bars, is_quick=records_per_s == 5_000)


ROWS = (row(1_000, {}), row(5_000, {"p99 ms": at_most(1.0, also=value_at_most(10.0))}))
