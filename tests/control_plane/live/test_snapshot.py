"""Folding telemetry: the newest truth wins, whatever the order in which brokers are read."""

from __future__ import annotations

import json
from typing import Any

import pytest

from control_plane.live.snapshot import BadTelemetry, Snapshot

ROW = {
    "at_ms": 1000, "topic_id": "t-1", "leader": 1, "leader_epoch": 3, "isr": [1], "log_start_offset": 2,
    "replicas": [{"broker": 1, "log_end_offset": 12}, {"broker": 2, "log_end_offset": -1}], "high_watermark": 10,
    "last_stable_offset": 10, "log_end_offset": 12, "size_bytes": 9007199254740993, "last_append_ms": 900,
}  # fmt: skip


def tell(snapshot: Snapshot, kind: str = "partition", *, key: dict[str, Any] | None = None, **changes: Any) -> None:
    subject = {"v": 1, "broker": 1, "broker_epoch": 5, "kind": kind, "tenant": "demo", "name": "orders", "partition": 0}
    row = {**ROW, **changes}
    snapshot.apply(json.dumps({**subject, **(key or {})}).encode(), json.dumps(row).encode())


def test_rows_come_in_the_order_of_partitions_and_as_rest_shows_them() -> None:
    snapshot = Snapshot()
    tell(snapshot, key={"partition": 1})
    tell(snapshot)
    rows = snapshot.topic("demo", "orders")
    assert [row.partition for row in rows] == [0, 1]
    assert rows[0].record_count == 8
    assert rows[0].as_json() == {
        "partition": 0, "leader": 1, "leader_epoch": 3, "isr": [1], "log_start_offset": "2", "high_watermark": "10",
        "last_stable_offset": "10", "log_end_offset": "12", "size_bytes": "9007199254740993",
        "replicas": [{"broker": 1, "in_sync": True, "log_end_offset": "12"},
                     {"broker": 2, "in_sync": False, "log_end_offset": None}],
    }  # fmt: skip


def test_tenants_do_not_see_each_other() -> None:
    snapshot = Snapshot()
    tell(snapshot)
    assert snapshot.topic("other", "orders") == ()
    assert snapshot.topics("other") == {}
    assert list(snapshot.topics("demo")) == ["orders"]


def test_a_deposed_leaders_late_row_changes_nothing() -> None:
    snapshot = Snapshot()
    tell(snapshot, leader_epoch=4, high_watermark=20)
    tell(snapshot, leader_epoch=3, high_watermark=10, at_ms=2000)
    assert snapshot.topic("demo", "orders")[0].high_watermark == 20


def test_a_topic_made_again_starts_over_although_its_epochs_do() -> None:
    snapshot = Snapshot()
    tell(snapshot, leader_epoch=9)
    tell(snapshot, topic_id="t-2", leader_epoch=0, high_watermark=0, at_ms=3000)
    assert snapshot.topic("demo", "orders")[0].high_watermark == 0


def test_a_deleted_topic_is_gone() -> None:
    snapshot = Snapshot()
    tell(snapshot)
    tell(snapshot, is_deleted=True, at_ms=2000)
    assert snapshot.topic("demo", "orders") == ()


def test_listeners_hear_which_topic_changed_and_nothing_of_stale_rows() -> None:
    snapshot, heard = Snapshot(), []
    snapshot.add_listener(heard.append)
    tell(snapshot)
    tell(snapshot, at_ms=1)
    assert heard == [("demo", "orders")]


def test_what_a_newer_broker_may_add_is_skipped() -> None:
    snapshot = Snapshot()
    tell(snapshot, key={"v": 2})
    tell(snapshot, "rebalance")
    tell(snapshot, colour="blue", at_ms=5)
    assert len(snapshot.topic("demo", "orders")) == 1


@pytest.mark.parametrize(("key", "value"), [(None, b"{}"), (b"[]", b"{}"), (b'{"v":1,"kind":"broker"}', b"{}")])
def test_a_record_that_is_not_telemetry_is_named(key: bytes | None, value: bytes) -> None:
    with pytest.raises(BadTelemetry):
        Snapshot().apply(key, value)
