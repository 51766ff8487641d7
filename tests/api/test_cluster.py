"""The cluster as operators see and change it."""

from __future__ import annotations

import pytest

from control_plane.accounts.models import User
from control_plane.audit.models import AuditEntry
from control_plane.cluster.actions import end_throttle_when_done
from control_plane.engine.cluster import PartitionName
from control_plane.live.service import live
from control_plane.live.snapshot import Snapshot
from tests.api.rest import Rest, problem, wrong_fields
from tests.api.telling import Stream
from tests.control_plane.memory_cluster import MemoryCluster
from tests.control_plane.memory_engine import MemoryEngine
from tests.control_plane.world import House

ORDERS = PartitionName("demo", "orders", 0)


@pytest.fixture
def stream(monkeypatch: pytest.MonkeyPatch) -> Stream:
    stream = Stream()
    monkeypatch.setattr(live, "snapshot", stream.snapshot)
    stream.cluster(1, 2, 3)
    for broker in (1, 2, 3):
        stream.broker(broker)
    return stream


@pytest.fixture
def operator(demo: House) -> Rest:
    return Rest.of_user(User.objects.create_user("operator@example.com", is_operator=True))


@pytest.fixture
def cluster(engine: MemoryEngine) -> MemoryCluster:
    engine.cluster.replicas[ORDERS] = (1, 2)
    return engine.cluster


def test_brokers_are_up_fenced_or_down(operator: Rest, stream: Stream) -> None:
    stream.now_s += 60
    stream.cluster(1, 2, 3, fenced=(2,))
    stream.broker(1, leader_count=3, size_bytes=2**61, disk_free_bytes=9)
    stream.broker(2)
    body = operator.get("/cluster").json()
    assert [(it["id"], it["status"]) for it in body["brokers"]] == [(1, "up"), (2, "fenced"), (3, "down")]
    first = body["brokers"][0]
    assert (first["is_controller"], first["leader_count"], first["replica_count"]) == (True, 3, 7)
    assert (first["size_bytes"], first["bytes_in"], first["host"]) == (str(2**61), str(2**60), "host-1")
    assert body["brokers"][2]["silent_for_s"] == 60.0
    assert body["quorum"] == {"leader": 1, "epoch": 3, "metadata_offset": "40", "voters": [1, 2, 3]}
    assert body["unclean_election_count"] == 2


def test_trouble_is_counted_and_listed_the_worst_first(operator: Rest, stream: Stream) -> None:
    stream.partition(partition=0)
    stream.partition(partition=1, isr=[1, 2])
    stream.partition(partition=2, isr=[1])
    stream.partition(partition=3, leader=-1, isr=[3])
    body = operator.get("/cluster").json()
    counts = {"all": 4, "leaderless": 1, "under_min_isr": 1, "under_replicated": 1, "moving": 0}
    assert body["partitions"] == counts
    assert [(it["partition"], it["trouble"]) for it in body["troubled"]] == [
        (3, "leaderless"),
        (2, "under_min_isr"),
        (1, "under_replicated"),
    ]
    assert body["troubled"][1] | {"osr": [2, 3], "tenant": "demo", "leader": 1} == body["troubled"][1]


def test_a_fenced_broker_that_is_silent_is_down_sooner(operator: Rest, stream: Stream) -> None:
    stream.now_s += 3
    stream.cluster(1, 2, 3, fenced=(2,))
    assert [it["status"] for it in operator.get("/cluster").json()["brokers"]] == ["up", "down", "up"]


def test_a_dead_brokers_own_telemetry_is_no_trouble_of_its_own(operator: Rest, stream: Stream) -> None:
    stream.partition("__telemetry", partition=2, leader=-1, tenant="")
    assert operator.get("/cluster").json()["troubled"] == []


def test_rows_that_nobody_repeats_are_of_topics_that_are_gone(operator: Rest, stream: Stream) -> None:
    stream.partition(partition=0, isr=[1])
    stream.now_s += 101
    stream.partition(partition=1)
    assert operator.get("/cluster").json()["partitions"]["all"] == 1


def test_a_move_shows_how_far_it_is(operator: Rest, stream: Stream) -> None:
    ends = [{"broker": 1, "log_end_offset": 100}, {"broker": 2, "log_end_offset": 25}]
    stream.partition(replicas=ends, isr=[1], adding=[2], removing=[1], min_insync=1)
    body = operator.get("/cluster").json()
    assert body["partitions"]["moving"] == 1
    [move] = body["moves"]
    assert (move["progress"], move["bytes_left"], move["adding"], move["removing"]) == (0.25, "750", [2], [1])
    assert body["troubled"] == []


def test_nothing_is_made_up_before_a_broker_has_spoken(operator: Rest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live, "snapshot", Snapshot())
    problem(operator.get("/cluster"), 503)


def test_a_plan_is_shown_before_it_is_begun(operator: Rest, stream: Stream, cluster: MemoryCluster) -> None:
    stream.partition()
    plan = operator.post("/cluster/moves?dry_run=true", {"replication_factor": 3}).json()
    assert (plan["is_begun"], plan["move_count"], plan["size_bytes"]) == (False, 1, "1000")
    [move] = plan["moves"]
    assert (move["before"], move["after"], move["size_bytes"]) == ([1, 2], [1, 2, 3], "1000")
    assert cluster.moving == {}

    wish = {"replication_factor": 3, "plan_id": plan["plan_id"], "throttle_bytes_per_s": 1 << 20}
    begun = operator.post("/cluster/moves", wish)
    assert (begun.status_code, begun.json()["is_begun"]) == (202, True)
    assert (cluster.moving, cluster.bytes_per_s_max) == ({ORDERS: (1, 2, 3)}, 1 << 20)
    entry = AuditEntry.objects.get(verb="cluster.moves_begun")
    assert (entry.actor, entry.tenant) == ("operator@example.com", None)
    assert entry.after["moves"] == 1


def test_a_plan_that_has_become_another_is_not_begun(operator: Rest, stream: Stream, cluster: MemoryCluster) -> None:
    plan = operator.post("/cluster/moves?dry_run=true", {"replication_factor": 3}).json()
    cluster.replicas[ORDERS] = (2,)
    problem(operator.post("/cluster/moves", {"replication_factor": 3, "plan_id": plan["plan_id"]}), 409)
    problem(operator.post("/cluster/moves", {"replication_factor": 3}), 409)
    assert cluster.moving == {}


def test_moves_are_cancelled_and_the_throttle_with_them(operator: Rest, stream: Stream, cluster: MemoryCluster) -> None:
    cluster.moving, cluster.bytes_per_s_max = {ORDERS: (2, 3)}, 5000
    assert operator.delete("/cluster/moves").json() == {"cancelled_count": 1}
    assert (cluster.moving, cluster.bytes_per_s_max) == ({}, None)
    assert AuditEntry.objects.filter(verb="cluster.moves_cancelled").count() == 1


def test_a_throttle_ends_with_the_last_move(demo: House, cluster: MemoryCluster) -> None:
    cluster.moving, cluster.bytes_per_s_max = {ORDERS: (2, 3)}, 5000
    assert not end_throttle_when_done()
    assert cluster.bytes_per_s_max == 5000
    cluster.finish_moves()
    assert end_throttle_when_done()
    assert cluster.bytes_per_s_max is None


def test_a_broker_is_drained_stopped_and_removed(operator: Rest, stream: Stream, cluster: MemoryCluster) -> None:
    assert "drain it first" in problem(operator.delete("/cluster/brokers/2"), 409)["detail"]
    plan = operator.post("/cluster/moves?dry_run=true", {"leaving": [2]}).json()
    assert plan["moves"][0]["after"] == [1, 3]
    operator.post("/cluster/moves", {"leaving": [2], "plan_id": plan["plan_id"]})
    cluster.finish_moves()
    assert "stop its process" in problem(operator.delete("/cluster/brokers/2"), 409)["detail"]
    stream.now_s += 60
    assert operator.delete("/cluster/brokers/2").status_code == 204
    assert cluster.brokers == [1, 3]
    problem(operator.delete("/cluster/brokers/9"), 404)
    assert AuditEntry.objects.get(verb="cluster.broker_removed").target == "broker 2"


def test_a_broker_cannot_leave_when_too_few_stay_for_the_copies(
    operator: Rest, stream: Stream, cluster: MemoryCluster
) -> None:
    cluster.replicas[ORDERS] = (1, 2, 3)
    path = "/cluster/moves?dry_run=true"
    assert "keep 2 copies" in problem(operator.post(path, {"leaving": [2]}), 409)["detail"]
    [move] = operator.post(path, {"leaving": [2], "replication_factor": 2}).json()["moves"]
    assert (move["before"], move["after"], move["size_bytes"]) == ([1, 2, 3], [1, 3], "0")


def test_nothing_is_planned_around_a_broker_that_is_only_away(
    operator: Rest, stream: Stream, cluster: MemoryCluster
) -> None:
    cluster.brokers = [1, 3]
    assert "missing: 2" in problem(operator.post("/cluster/moves?dry_run=true", {}), 409)["detail"]
    assert operator.post("/cluster/moves?dry_run=true", {"leaving": [2]}).json()["move_count"] == 1


def test_impossible_wishes_are_refused_by_field(operator: Rest, stream: Stream, cluster: MemoryCluster) -> None:
    path = "/cluster/moves?dry_run=true"
    assert wrong_fields(operator.post(path, {"replication_factor": 4})) == ["replication_factor"]
    assert wrong_fields(operator.post(path, {"leaving": [1, 2, 3]})) == ["leaving"]
    assert wrong_fields(operator.post(path, {"throttle_bytes_per_s": 5})) == ["throttle_bytes_per_s"]


def test_preferred_leaders_are_elected(operator: Rest, stream: Stream, cluster: MemoryCluster) -> None:
    cluster.misplaced_leader_count = 4
    assert operator.post("/cluster/elections").json() == {"moved_count": 4}
    assert AuditEntry.objects.filter(verb="cluster.leaders_elected").count() == 1


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/cluster"),
        ("POST", "/cluster/moves"),
        ("DELETE", "/cluster/moves"),
        ("POST", "/cluster/elections"),
        ("DELETE", "/cluster/brokers/1"),
    ],
)
def test_it_is_for_operators_only(owner: Rest, stream: Stream, method: str, path: str) -> None:
    assert "operators" in problem(owner.call(method, path, {}), 403)["detail"]
