"""Groups by REST: what is shown, what a reset would do and does, who may."""

from __future__ import annotations

import time
from typing import Any

import pytest

from control_plane.audit.models import AuditEntry
from control_plane.engine.groups import GroupName, LogRange
from control_plane.live.service import live
from control_plane.live.snapshot import Snapshot
from tests.api.rest import Rest, problem, wrong_fields
from tests.api.telling import Stream, member
from tests.control_plane.memory_engine import MemoryEngine
from tests.control_plane.memory_groups import MemoryGroups
from tests.control_plane.world import House

READERS = GroupName("demo", "readers")
RESET = "/groups/readers:reset-offsets"
DRY = f"{RESET}?dry_run=true"


@pytest.fixture
def stream(monkeypatch: pytest.MonkeyPatch) -> Stream:
    stream = Stream()
    monkeypatch.setattr(live, "snapshot", stream.snapshot)
    return stream


@pytest.fixture
def groups(engine: MemoryEngine) -> MemoryGroups:
    for partition in range(2):
        engine.groups.logs["demo", ("orders", partition)] = LogRange(10, 100)
        engine.groups.times["demo", ("orders", partition)] = [1000 + number for number in range(90)]
    engine.groups.offsets[READERS] = {("orders", 0): 40, ("orders", 1): 90}
    return engine.groups


def now_ms() -> int:
    return int(time.time() * 1000)


def test_a_group_is_shown_with_what_it_has_not_read(developer: Rest, stream: Stream) -> None:
    stream.partition()
    stream.group(members=[member("m-1", 0)])
    stream.offset(40, unread_ms=now_ms() - 90_000, commit_ms=now_ms(), metadata="note")
    stream.readers(("app", "/10.0.0.1", 55, 1))
    page = developer.get("/groups/readers").json()
    assert (page["state"], page["generation"], page["assignor"], page["member_count"]) == ("Stable", 4, "range", 1)
    assert (page["coordinator"], page["offsets_partition"]) == (1, 7)
    [row] = page["partitions"]
    assert (row["committed"], row["position"], row["repeat_count"], row["high_watermark"]) == ("40", "55", "15", "100")
    assert (row["lag"], row["owner"], row["metadata"]) == ("60", "m-1", "note")
    assert 89 < row["lag_seconds"] < 120
    assert (page["lag"], page["lag_seconds"]) == ("60", row["lag_seconds"])
    assert page["members"][0]["partitions"] == [{"topic": "orders", "partitions": [0]}]


def test_the_list_has_every_group_of_the_tenant_and_no_other(developer: Rest, stream: Stream) -> None:
    stream.partition()
    for name in ("b", "a"):
        stream.group(name)
        stream.offset(100, group=name)
    stream.group("theirs", tenant="acme")
    rows = developer.get("/groups").json()["data"]
    assert [(row["name"], row["lag"], row["status"], row["topics"]) for row in rows] == [
        ("a", "0", "ok", ["orders"]),
        ("b", "0", "ok", ["orders"]),
    ]
    problem(developer.get("/groups/theirs"), 404)


def test_the_list_comes_in_pages_and_is_searched(developer: Rest, stream: Stream) -> None:
    for number in range(5):
        stream.group(f"group-{number}")
    first = developer.get("/groups?page_size=3").json()
    rest = developer.get(f"/groups?page_size=3&page_token={first['next_page_token']}").json()
    assert [row["name"] for row in first["data"] + rest["data"]] == [f"group-{number}" for number in range(5)]
    assert rest["next_page_token"] is None
    assert [row["name"] for row in developer.get("/groups?q=P-3").json()["data"]] == ["group-3"]
    assert wrong_fields(developer.get("/groups?page_token=x")) == ["page_token"]


def test_a_name_with_slashes_is_a_name(developer: Rest, stream: Stream) -> None:
    stream.group("a/b:c d")
    assert developer.get("/groups/a%2Fb:c%20d").json()["name"] == "a/b:c d"
    assert developer.get("/groups/a%2Fb:c%20d/timeline").json() == {"data": []}


def test_while_the_brokers_are_silent_the_engine_lists_the_groups(
    developer: Rest, groups: MemoryGroups, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live, "snapshot", Snapshot())
    [row] = developer.get("/groups").json()["data"]
    assert (row["name"], row["status"], row["lag"]) == ("readers", "unknown", None)
    problem(developer.get("/groups/readers"), 503)


def test_the_timeline_is_told_in_order(developer: Rest, stream: Stream) -> None:
    def event(at_ms: int, kind: str, **more: Any) -> dict[str, Any]:
        row = {"at_ms": at_ms, "kind": kind, "member": "m-1", "client_id": "app", "generation": 1}
        return {**row, "duration_ms": -1, "moved_count": -1, **more}

    stream.group(events=[event(1000, "joined"), event(4000, "rebalanced", duration_ms=3000, moved_count=2)])
    stream.group(events=[event(4001, "rebalanced", duration_ms=3000, moved_count=2), event(9000, "left")], at_ms=2)
    told = developer.get("/groups/readers/timeline").json()["data"]
    assert [(it["kind"], it["duration_ms"], it["moved_count"]) for it in told] == [
        ("joined", None, None),
        ("rebalanced", 3000, 2),
        ("left", None, None),
    ]


def test_the_timeline_names_topics_where_the_broker_does(developer: Rest, stream: Stream) -> None:
    row = {"member": "", "client_id": "", "generation": 1, "duration_ms": -1, "moved_count": -1}
    of_older_broker = {**row, "at_ms": 1000, "kind": "partitions_changed"}
    grown = {**of_older_broker, "at_ms": 2000, "topics": ["orders"], "partitions_before": 2, "partitions_after": 4}
    other = {**row, "at_ms": 3000, "kind": "subscription_changed", "topics": ["a"], "dropped_topics": ["b"]}
    stream.group(events=[of_older_broker, grown, {**other, "unnamed_count": 7}])
    names = ("topics", "dropped_topics", "unnamed_count", "partitions_before", "partitions_after")
    told = developer.get("/groups/readers").json()["events"]
    assert [tuple(event[name] for name in names) for event in told] == [
        ([], [], 0, None, None),
        (["orders"], [], 0, 2, 4),
        (["a"], ["b"], 7, None, None),
    ]


def test_a_topic_names_its_readers(developer: Rest, stream: Stream) -> None:
    developer.post("/topics", {"name": "orders", "partitions": 1})
    stream.group()
    stream.offset(40)
    stream.group("elsewhere")
    stream.offset(1, group="elsewhere", topic="payments")
    assert [row["name"] for row in developer.get("/topics/orders/groups").json()["data"]] == ["readers"]
    problem(developer.get("/topics/never-made/groups"), 404)


def test_lag_has_a_history(developer: Rest, stream: Stream) -> None:
    stream.partition()
    stream.group()
    stream.offset(40)
    stream.snapshot.sample_groups(1_000_000)
    stream.offset(90, at_ms=2)
    stream.snapshot.sample_groups(1_005_000)
    points = developer.get("/groups/readers/lag").json()["data"]
    assert [(it["at_ms"], it["records"]) for it in points] == [(1_000_000, 60), (1_005_000, 10)]


def test_a_dry_run_says_what_would_be_skipped_and_repeated(developer: Rest, groups: MemoryGroups) -> None:
    plan = developer.post(DRY, {"to": "offset", "offset": "60"}).json()
    assert (plan["is_done"], plan["skipped_count"], plan["replayed_count"]) == (False, "20", "30")
    first, second = plan["steps"]
    assert (first["before"], first["after"], first["skipped_count"]) == ("40", "60", "20")
    assert (second["before"], second["after"], second["replayed_count"]) == ("90", "60", "30")
    assert first["preview"] == "/api/v1/topics/orders/partitions/0/records?offset=60&max_records=1"
    assert plan["cli"].endswith("--group readers --reset-offsets --all-topics --to-offset 60 --dry-run")
    assert groups.offsets[READERS] == {("orders", 0): 40, ("orders", 1): 90}
    assert not AuditEntry.objects.filter(verb="group.offsets_reset").exists()


@pytest.mark.parametrize(
    ("wish", "after"),
    [
        ({"to": "earliest"}, ["10", "10"]),
        ({"to": "latest"}, ["100", "100"]),
        ({"to": "current"}, ["40", "90"]),
        ({"to": "timestamp", "timestamp_ms": 1005}, ["15", "15"]),
        ({"to": "duration", "duration_ms": 0}, ["100", "100"]),
        ({"to": "shift", "shift": -5}, ["35", "85"]),
        ({"to": "file", "csv": "orders,0,77\norders,1,5\n"}, ["77", "10"]),
    ],
)
def test_every_way_to_say_where(developer: Rest, groups: MemoryGroups, wish: dict[str, Any], after: list[str]) -> None:
    steps = developer.post(DRY, wish).json()["steps"]
    assert [step["after"] for step in steps] == after


def test_a_reset_is_carried_out_and_audited(developer: Rest, groups: MemoryGroups) -> None:
    wish = {"to": "earliest", "topics": [{"topic": "orders", "partitions": [1]}]}
    done = developer.post(RESET, wish).json()
    assert (done["is_done"], len(done["steps"])) == (True, 1)
    assert groups.offsets[READERS] == {("orders", 0): 40, ("orders", 1): 10}
    entry = AuditEntry.objects.get(verb="group.offsets_reset")
    assert (entry.actor, entry.target, entry.tenant_id) == ("developer@demo.example", "readers", "demo")
    assert (entry.before, entry.after["offsets"]) == ({"offsets": {"orders-1": 90}}, {"orders-1": 10})


def test_a_new_group_can_begin_where_it_is_told(developer: Rest, groups: MemoryGroups) -> None:
    path = "/groups/newcomers:reset-offsets"
    problem(developer.post(path, {"to": "earliest"}), 404)
    developer.post(path, {"to": "latest", "topics": [{"topic": "orders"}]})
    assert groups.offsets[GroupName("demo", "newcomers")] == {("orders", 0): 100, ("orders", 1): 100}


def test_while_it_has_members_nothing_is_reset(developer: Rest, groups: MemoryGroups) -> None:
    groups.members[READERS] = 2
    assert developer.post(DRY, {"to": "earliest"}).json()["member_count"] == 2
    said = problem(developer.post(RESET, {"to": "earliest"}), 409)
    assert "has 2 members: stop them first" in said["detail"]
    assert "has 2 members" in problem(developer.delete("/groups/readers"), 409)["detail"]
    assert "has members" in problem(developer.delete("/groups/readers/offsets?topic=orders"), 409)["detail"]
    assert groups.offsets[READERS] == {("orders", 0): 40, ("orders", 1): 90}


@pytest.mark.parametrize(
    ("wish", "field"),
    [
        ({"to": "somewhere"}, "to"),
        ({"to": "offset"}, "offset"),
        ({"to": "offset", "offset": "-1"}, "offset"),
        ({"to": "earliest", "offset": "5"}, "offset"),
        ({"to": "timestamp"}, "timestamp_ms"),
        ({"to": "timestamp", "timestamp_ms": 1_763_000_000_000_000}, "timestamp_ms"),  # microseconds
        ({"to": "file", "csv": "orders,0,20\rorders,1,20\r"}, "csv"),
        ({"to": "file", "csv": f"orders,0,{'9' * 200_000}"}, "csv"),
        ({"to": "file", "csv": "orders,0"}, "csv"),
        ({"to": "file", "csv": "payments,0,5"}, "csv"),
        ({"to": "file", "csv": "orders,0,5", "topics": []}, "topics"),
        ({"to": "latest", "topics": []}, "topics"),
        ({"to": "latest", "topics": [{"topic": "payments"}]}, "topics"),
        ({"to": "latest", "topics": [{"topic": "orders", "partitions": [2]}]}, "topics"),
        ({"to": "latest", "colour": "blue"}, "colour"),
    ],
)
def test_impossible_wishes_are_refused_by_field(
    developer: Rest, groups: MemoryGroups, wish: dict[str, Any], field: str
) -> None:
    assert wrong_fields(developer.post(DRY, wish)) == [field]


def test_a_reset_that_is_refused_has_set_nothing(developer: Rest, groups: MemoryGroups) -> None:
    before = dict(groups.offsets[READERS])
    assert wrong_fields(developer.post(RESET, {"to": "timestamp", "timestamp_ms": 1 << 62})) == ["timestamp_ms"]
    assert groups.offsets[READERS] == before


def test_an_export_is_what_kafkas_own_tool_takes(viewer: Rest, groups: MemoryGroups) -> None:
    answer = viewer.get("/groups/readers/offsets.csv")
    assert answer.content == b"orders,0,40\norders,1,90\n"
    assert answer["Content-Type"].startswith("text/csv")
    problem(viewer.get("/groups/nobody/offsets.csv"), 404)


def test_offsets_and_groups_are_deleted_and_audited(developer: Rest, groups: MemoryGroups) -> None:
    path = "/groups/readers/offsets?topic=orders&partitions=1"
    assert developer.delete(path).json() == {"deleted_count": 1}
    assert groups.offsets[READERS] == {("orders", 0): 40}
    problem(developer.delete(path), 404)
    assert developer.delete("/groups/readers").status_code == 204
    assert READERS not in groups.offsets
    problem(developer.delete("/groups/readers"), 404)
    verbs = list(AuditEntry.objects.filter(target="readers").values_list("verb", flat=True))
    assert sorted(verbs) == ["group.deleted", "group.offsets_deleted"]


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("POST", RESET, {"to": "earliest"}),
        ("POST", DRY, {"to": "earliest"}),
        ("DELETE", "/groups/readers", None),
        ("DELETE", "/groups/readers/offsets?topic=orders", None),
    ],
)
def test_viewers_look_and_change_nothing(
    viewer: Rest, groups: MemoryGroups, method: str, path: str, body: dict[str, Any] | None
) -> None:
    assert "developer" in problem(viewer.call(method, path, body), 403)["detail"]
    assert groups.offsets[READERS] == {("orders", 0): 40, ("orders", 1): 90}


def test_another_tenants_group_is_ones_own_and_empty(acme: House, demo: House, groups: MemoryGroups) -> None:
    other = Rest.of_user(acme.developer)
    problem(other.delete("/groups/readers"), 404)
    problem(other.get("/groups/readers/offsets.csv"), 404)
    problem(other.post(RESET, {"to": "earliest"}), 404)
