"""What telemetry tells, as topics and partitions show it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from control_plane.live.service import live
from control_plane.live.snapshot import Snapshot
from tests.api.rest import Rest


@pytest.fixture
def snapshot(monkeypatch: pytest.MonkeyPatch) -> Snapshot:
    fresh = Snapshot()
    monkeypatch.setattr(live, "snapshot", fresh)
    return fresh


def tell(
    snapshot: Snapshot, topic_id: str, partition: int, high_watermark: int, last_append_ms: int = 0, **more: Any
) -> None:
    key = {"v": 1, "broker": 1, "broker_epoch": 1, "kind": "partition", "tenant": "demo", "name": "orders"}
    value = {
        "at_ms": 1000,
        "topic_id": topic_id,
        "leader": 1,
        "leader_epoch": 0,
        "isr": [1],
        "replicas": [{"broker": 1, "log_end_offset": high_watermark}],
        "log_start_offset": 5,
        "high_watermark": high_watermark,
        "last_stable_offset": high_watermark,
        "log_end_offset": high_watermark,
        "size_bytes": 100,
        "last_append_ms": last_append_ms,
        **more,
    }
    snapshot.apply(json.dumps({**key, "partition": partition}).encode(), json.dumps(value).encode())


def make_orders(rest: Rest) -> str:
    topic_id: str = rest.post("/topics", {"name": "orders", "partitions": 2}).json()["topic_id"]
    return topic_id


def test_a_topic_shows_the_sums_over_its_partitions(developer: Rest, snapshot: Snapshot) -> None:
    topic_id = make_orders(developer)
    tell(snapshot, topic_id, 0, high_watermark=10, last_append_ms=777)
    tell(snapshot, topic_id, 1, high_watermark=2**60)
    topic = developer.get("/topics/orders").json()
    assert topic["record_count"] == str(5 + 2**60 - 5)
    assert (topic["size_bytes"], topic["last_write_ms"]) == ("200", 777)


def test_a_topic_shows_the_worst_trouble_of_its_partitions(developer: Rest, snapshot: Snapshot) -> None:
    topic_id = make_orders(developer)
    tell(snapshot, topic_id, 0, high_watermark=10)
    tell(snapshot, topic_id, 1, high_watermark=10)
    assert developer.get("/topics/orders").json()["trouble"] is None
    tell(snapshot, topic_id, 0, high_watermark=10, isr=[], min_insync=1)
    assert developer.get("/topics/orders").json()["trouble"] == "under_min_isr"
    tell(snapshot, topic_id, 1, high_watermark=-1, leader=-1, leader_epoch=1)
    assert developer.get("/topics").json()["data"][0]["trouble"] == "leaderless"


def test_partitions_come_from_telemetry_once_it_knows_them_all(developer: Rest, snapshot: Snapshot) -> None:
    topic_id = make_orders(developer)
    tell(snapshot, topic_id, 0, high_watermark=10)
    assert developer.get("/topics/orders/partitions").json()["source"] == "engine"
    tell(snapshot, topic_id, 1, high_watermark=11)
    body = developer.get("/topics/orders/partitions").json()
    assert body["source"] == "telemetry"
    assert [row["high_watermark"] for row in body["data"]] == ["10", "11"]
    assert body["data"][0]["replicas"] == [{"broker": 1, "in_sync": True, "log_end_offset": "10"}]


def test_rows_of_a_topic_deleted_under_the_same_name_do_not_count(developer: Rest, snapshot: Snapshot) -> None:
    make_orders(developer)
    for partition in (0, 1):
        tell(snapshot, "AAAAAAAAAAAAAAAAAAAAAA", partition, high_watermark=99)
    assert developer.get("/topics/orders").json()["record_count"] is None
