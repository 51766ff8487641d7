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
        "last_stable_offset": "10", "log_end_offset": "12", "size_bytes": "9007199254740993", "partition_epoch": None,
        "osr": [2], "elr": [], "adding": [], "removing": [], "min_insync": 1, "unclean_election_count": 0,
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


def test_a_leader_whose_clock_was_set_back_is_still_heard() -> None:
    snapshot = Snapshot()
    tell(snapshot, at_ms=10_000_000, high_watermark=10)
    tell(snapshot, at_ms=9_990_000, high_watermark=9)  # read again after a reconnect
    assert snapshot.topic("demo", "orders")[0].high_watermark == 10
    tell(snapshot, at_ms=6_000_000, high_watermark=11)
    assert snapshot.topic("demo", "orders")[0].high_watermark == 11


def test_a_partition_that_lost_its_leader_keeps_the_offsets_that_were_told() -> None:
    snapshot = Snapshot()
    tell(snapshot, min_insync=2)
    unknown = {"high_watermark": -1, "log_end_offset": -1, "log_start_offset": -1, "last_stable_offset": -1}
    replicas = [{"broker": 1, "log_end_offset": -1}, {"broker": 2, "log_end_offset": -1}]
    tell(snapshot, leader=-1, leader_epoch=4, isr=[1], replicas=replicas, size_bytes=-1, at_ms=2, **unknown)
    row = snapshot.topic("demo", "orders")[0]
    assert row.is_leaderless
    assert (row.high_watermark, row.min_insync, row.replicas[0].log_end_offset) == (10, 2, 12)
    assert row.as_json()["leader"] is None


def test_a_leaderless_partition_of_which_nothing_was_told_has_unknown_offsets() -> None:
    snapshot = Snapshot()
    tell(snapshot, leader=-1, high_watermark=-1, log_end_offset=-1, log_start_offset=-1, size_bytes=-1)
    shown = snapshot.topic("demo", "orders")[0].as_json()
    assert (shown["high_watermark"], shown["log_end_offset"], shown["size_bytes"]) == (None, None, None)


def test_replicas_on_their_way_are_progress_and_not_trouble() -> None:
    snapshot = Snapshot()
    ends = [{"broker": 1, "log_end_offset": 102}, {"broker": 3, "log_end_offset": 27}]
    tell(snapshot, log_start_offset=2, log_end_offset=102, replicas=ends, adding=[3], removing=[2])
    row = snapshot.topic("demo", "orders")[0]
    assert row.is_moving
    assert row.move_progress == 0.25
    assert not row.is_under_replicated
    assert row.osr == (3,)


CLUSTER = {
    "at_ms": 1, "metadata_offset": 10, "controller": 1, "controller_epoch": 2, "voters": [1, 2], "brokers": [
        {"broker": 1, "broker_epoch": 5, "host": "a", "rack": "", "is_fenced": False, "is_shutting_down": False},
    ], "unclean_election_count": 0,
}  # fmt: skip


def test_a_deposed_controllers_word_does_not_count() -> None:
    snapshot = Snapshot()
    tell(snapshot, "cluster", **{**CLUSTER, "controller": 2, "controller_epoch": 3})
    tell(snapshot, "cluster", **{**CLUSTER, "metadata_offset": 99})
    cluster = snapshot.cluster()
    assert cluster is not None
    assert (cluster.controller, cluster.voters, cluster.brokers[0].host) == (2, (1, 2), "a")


def test_a_brokers_former_life_does_not_count() -> None:
    snapshot = Snapshot(clock=lambda: 77.0)
    row = {
        "started_ms": 1, "connection_count": 1, "partition_count": 1, "bytes_in": 1, "bytes_out": 1, "loop_lag_ms": 3
    }  # fmt: skip
    ills = {"is_disk_low": True, "is_degraded": True, "damaged_count": 2}
    tell(snapshot, "broker", key={"broker_epoch": 9}, **row, leader_count=4, **ills)
    tell(snapshot, "broker", key={"broker_epoch": 5}, **row, at_ms=99_999)
    [state] = snapshot.brokers()
    assert (state.broker_epoch, state.leader_count, state.is_disk_low, state.heard_s) == (9, 4, True, 77.0)
    assert (state.is_degraded, state.damaged_count) == (True, 2)


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
