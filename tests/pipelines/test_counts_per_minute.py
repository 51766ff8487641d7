"""The transform on five rows, in real Spark."""

from __future__ import annotations

import json

import pytest

from tests.pipelines.spark import run_in_spark_environment

FIVE_ROWS = """
import datetime as dt, json
from pipelines.session import spark_session
from pipelines.transforms.counts_per_minute import as_keyed_json, counts_per_minute

at = lambda minute, second: dt.datetime(2026, 1, 5, 10, minute, second, tzinfo=dt.timezone.utc)
rows = [("clicks", at(0, 1), b"aa"), ("clicks", at(0, 59), b"b"), ("clicks", at(1, 0), None)]
rows += [("orders", at(0, 5), b"cccc"), ("clicks", at(1, 30), b"")]
spark = spark_session("five rows", master="local[1]")
frame = spark.createDataFrame(rows, "topic string, timestamp timestamp, value binary")
for row in as_keyed_json(counts_per_minute(frame)).collect():
    print("ROW", json.dumps([bytes(row.key).decode(), json.loads(bytes(row.value))]))
"""


@pytest.mark.spark
def test_five_rows_are_counted_by_topic_and_minute() -> None:
    output = run_in_spark_environment("-c", FIVE_ROWS)
    rows = dict(json.loads(line.removeprefix("ROW ")) for line in output.splitlines() if line.startswith("ROW "))
    first, second = "2026-01-05T10:00:00Z", "2026-01-05T10:01:00Z"
    assert rows == {
        f"clicks@{first}": {"topic": "clicks", "minute": first, "records": 2, "bytes": 3},
        f"clicks@{second}": {"topic": "clicks", "minute": second, "records": 2, "bytes": 0},
        f"orders@{first}": {"topic": "orders", "minute": first, "records": 1, "bytes": 4},
    }
