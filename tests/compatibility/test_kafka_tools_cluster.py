"""kafka-topics, kafka-reassign-partitions, kafka-leader-election, kafka-metadata-quorum and kafka-cluster of Apache
Kafka against three brokers of ours, in the order in which an operator meets them. A JVM start costs a second.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from broker_engine.wire.messages.metadata import MetadataResponsePartition
from tests.broker_engine.cluster.cluster_process import ClusterProcess, wait_for
from tests.broker_engine.handlers.calls import batch_of, fetch, produce, values_of
from tests.broker_engine.raw_client import RawClient
from tests.compatibility.kafka_admin_tools import KafkaTools

pytestmark = pytest.mark.kafka_peer


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[ClusterProcess]:
    with ClusterProcess(tmp_path) as cluster:
        cluster.wait_for_brokers(1, 2, 3)
        yield cluster


@pytest.fixture
def tools(cluster: ClusterProcess, tmp_path: Path) -> KafkaTools:
    return KafkaTools(cluster.bootstrap, tmp_path)


def partition(cluster: ClusterProcess, topic: str, index: int = 0) -> MetadataResponsePartition:
    for shown in cluster.metadata().topics:
        if shown.name == topic:
            return next(each for each in shown.partitions if each.partition_index == index)
    raise OSError("not shown yet")


def wait_until(cluster: ClusterProcess, topic: str, holds: Callable[[MetadataResponsePartition], bool]) -> None:
    wait_for(f"the state of {topic}", lambda: holds(partition(cluster, topic)))


def write(cluster: ClusterProcess, topic: str, value: bytes) -> None:
    def is_taken() -> bool:
        leader_id = partition(cluster, topic).leader_id
        if leader_id not in [node.node_id for node in cluster.running]:
            return False
        with RawClient(cluster[leader_id].address()) as client:
            return bool(produce(client, topic, batch_of(value)).error_code == 0)

    wait_for(f"{value!r} acked", is_taken)


def read(cluster: ClusterProcess, topic: str) -> list[bytes | None]:
    with RawClient(cluster[partition(cluster, topic).leader_id].address()) as client:
        return values_of(fetch(client, topic))


def test_a_dead_broker_is_seen_and_its_leaders_come_back(cluster: ClusterProcess, tools: KafkaTools) -> None:
    tools.create("orders", 6, 3)
    rows = tools.describe("orders")
    assert sorted(row.leader or 0 for row in rows.values()) == [1, 1, 2, 2, 3, 3]
    assert all(sorted(row.isr) == [1, 2, 3] and row.leader == row.replicas[0] for row in rows.values())
    cluster[2].kill()
    cluster.wait_for_brokers(1, 3)
    rows = tools.describe("orders", "--under-replicated-partitions")
    assert len(rows) == 6
    assert all(sorted(row.isr) == [1, 3] and row.leader in (1, 3) for row in rows.values())
    said = tools.run("cluster", "list-endpoints", "--include-fenced-brokers")
    assert [line.split()[4] for line in said.splitlines() if line[:1].isdecimal()] == ["unfenced", "fenced", "unfenced"]
    cluster[2].start()
    wait_for("full ISRs", lambda: all(len(partition(cluster, "orders", n).isr_nodes) == 3 for n in range(6)))
    said = tools.run("election", "--election-type", "preferred", "--all-topic-partitions")
    assert "Successfully completed leader election (PREFERRED) for partitions orders-" in said
    rows = tools.describe("orders")
    assert sorted(row.leader or 0 for row in rows.values()) == [1, 1, 2, 2, 3, 3]
    assert "orders" not in tools.run("election", "--election-type", "preferred", "--all-topic-partitions")


def test_replicas_grow_move_and_shrink(cluster: ClusterProcess, tools: KafkaTools) -> None:
    tools.create("grown", 1, 1)
    home = partition(cluster, "grown").leader_id
    write(cluster, "grown", b"before the move")
    everybody = [home, *(node_id for node_id in (1, 2, 3) if node_id != home)]
    said = tools.reassign("execute", "grown", {0: everybody}, "--throttle", "50000000")
    assert "Successfully started partition reassignment for grown-0" in said, said
    wait_until(cluster, "grown", lambda row: len(row.isr_nodes) == 3)
    said = tools.reassign("verify", "grown", {0: everybody})
    assert "Reassignment of partition grown-0 is completed." in said, said
    assert "No partition reassignments found." in tools.run("reassign", "--list")
    assert tools.describe("grown")[0].replicas == tuple(everybody)
    write(cluster, "grown", b"after it")
    tools.reassign("execute", "grown", {0: everybody[1:2]})
    wait_until(cluster, "grown", lambda row: list(row.replica_nodes) == everybody[1:2])
    row = tools.describe("grown")[0]
    assert (row.leader, row.isr) == (everybody[1], (everybody[1],))
    wait_for("the records", lambda: read(cluster, "grown") == [b"before the move", b"after it"])


def test_a_slow_move_is_listed_and_cancelled(cluster: ClusterProcess, tools: KafkaTools) -> None:
    tools.create("slow", 1, 2)
    before = tools.describe("slow")[0].replicas
    (third,) = {1, 2, 3} - set(before)
    for _ in range(4):
        write(cluster, "slow", b"x" * 500_000)
    everybody = [*before, third]
    assert "Successfully started" in tools.reassign("execute", "slow", {0: everybody}, "--throttle", "1000")
    said = tools.run("reassign", "--list")
    assert f"slow-0: replicas: {','.join(map(str, everybody))}. adding: {third}." in said, said
    assert "is still in progress" in tools.reassign("verify", "slow", {0: everybody})
    said = tools.reassign("cancel", "slow", {0: everybody})
    assert "Successfully cancelled partition reassignment for: slow-0" in said, said
    row = tools.describe("slow")[0]
    assert (row.replicas, sorted(row.isr)) == (before, sorted(before))


def test_an_unclean_election_waits_for_the_operator(cluster: ClusterProcess, tools: KafkaTools) -> None:
    tools.create("risky", 1, 2, min_insync_replicas="1")
    first, second = tools.describe("risky")[0].replicas
    write(cluster, "risky", b"on both")
    cluster[second].kill()
    wait_until(cluster, "risky", lambda row: list(row.isr_nodes) == [first])
    write(cluster, "risky", b"on one")
    cluster[first].kill()
    cluster[second].start()
    wait_until(cluster, "risky", lambda row: row.leader_id == -1 and row.error_code == 5)
    row = tools.describe("risky", "--unavailable-partitions")[0]
    assert (row.leader, row.isr, row.elr) == (None, (), (first,))
    said = tools.run("election", "--election-type", "unclean", "--topic", "risky", "--partition", "0")
    assert "Successfully completed leader election (UNCLEAN) for partitions risky-0" in said, said
    wait_until(cluster, "risky", lambda row: row.leader_id == second)
    wait_for("what is left", lambda: read(cluster, "risky") == [b"on both"])


def test_a_topic_with_one_replica_waits_for_its_broker(cluster: ClusterProcess, tools: KafkaTools) -> None:
    tools.create("single", 1, 1)
    home = partition(cluster, "single").leader_id
    write(cluster, "single", b"kept")
    cluster[home].kill()
    wait_until(cluster, "single", lambda row: row.leader_id == -1)
    row = tools.describe("single", "--unavailable-partitions")[0]
    assert (row.leader, row.isr, row.elr) == (None, (), (home,))
    shown = partition(cluster, "single")
    assert (shown.error_code, list(shown.offline_replicas)) == (5, [home])
    cluster[home].start()
    wait_until(cluster, "single", lambda row: row.leader_id == home)
    wait_for("the record", lambda: read(cluster, "single") == [b"kept"])


def test_the_quorum_and_a_broker_that_goes_for_good(cluster: ClusterProcess, tools: KafkaTools) -> None:
    leader = cluster.controller_id()
    status = tools.run("quorum", "describe", "--status")
    assert f"LeaderId:               {leader}" in status, status
    replication = tools.run("quorum", "describe", "--replication")
    rows = [line.split() for line in replication.splitlines() if line[:1].isdecimal()]
    assert sorted(int(row[0]) for row in rows) == [1, 2, 3]
    tools.create("left", 1, 3)
    goes = next(node_id for node_id in (1, 2, 3) if node_id != leader)
    stays = [node_id for node_id in (1, 2, 3) if node_id != goes]
    said = tools.run("cluster", "unregister", "--id", str(goes))
    assert "still holds 1 replica" in said, said
    tools.reassign("execute", "left", {0: stays})
    wait_until(cluster, "left", lambda row: sorted(row.replica_nodes) == stays)
    cluster[goes].stop()
    cluster.wait_for_brokers(*stays)
    said = tools.run("cluster", "unregister", "--id", str(goes))
    assert f"Broker {goes} is no longer registered." in said, said
