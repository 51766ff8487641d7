"""A node that goes, by a kill or in good order, and who takes over."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from broker_engine.handlers.metadata import ELECTION_WAIT_MS
from broker_engine.ids import NO_LEADER
from broker_engine.wire.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponsePartition
from tests.broker_engine.broker_process import BrokerProcess
from tests.broker_engine.cluster.cluster_process import ClusterProcess, wait_for
from tests.broker_engine.handlers.calls import batch_of, create, fetch, produce, values_of
from tests.broker_engine.raw_client import RawClient

FAILOVER_S = 2.0


@pytest.fixture
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ClusterProcess]:
    with ClusterProcess(tmp_path_factory.mktemp("cluster")) as cluster:
        cluster.wait_for_brokers(1, 2, 3)
        yield cluster


def partition(cluster: ClusterProcess, topic: str) -> MetadataResponsePartition:
    for shown in cluster.metadata().topics:
        if shown.name == topic:
            return shown.partitions[0]
    raise OSError("not shown yet")


def make_topic(cluster: ClusterProcess) -> str:
    with RawClient(cluster[1].address()) as client:
        topic = create(client)
    wait_for("a full ISR", lambda: len(partition(cluster, topic).isr_nodes) == 3)
    return topic


def new_leader(cluster: ClusterProcess, topic: str) -> int | None:
    leader_id = partition(cluster, topic).leader_id
    return leader_id if leader_id in [node.node_id for node in cluster.running] else None


def produce_somewhere(cluster: ClusterProcess, topic: str, value: bytes) -> bool:
    leader_id = new_leader(cluster, topic)
    if leader_id is None:
        return False
    with RawClient(cluster[leader_id].address()) as client:
        return bool(produce(client, topic, batch_of(value)).error_code == 0)


@pytest.mark.parametrize("who", ["the leader", "the controller", "somebody else"])
def test_a_killed_node_is_replaced_soon(cluster: ClusterProcess, who: str) -> None:
    topic = make_topic(cluster)
    controller_id, leader_id = cluster.controller_id(), partition(cluster, topic).leader_id
    wait_for("an acked record", lambda: produce_somewhere(cluster, topic, b"before"))
    others = [node.node_id for node in cluster if node.node_id not in (controller_id, leader_id)]
    victim = {"the leader": leader_id, "the controller": controller_id, "somebody else": others[0]}[who]
    cluster[victim].kill()
    killed = time.monotonic()
    wait_for("an acked record", lambda: produce_somewhere(cluster, topic, b"after"), timeout_s=FAILOVER_S)
    took_s = time.monotonic() - killed
    assert took_s < FAILOVER_S
    cluster[victim].start()
    wait_for("a full ISR", lambda: len(partition(cluster, topic).isr_nodes) == 3)
    with RawClient(cluster[new_leader(cluster, topic) or 0].address()) as client:
        assert set(values_of(fetch(client, topic))) == {b"before", b"after"}  # a retry may have come twice


def leader_as_told_by(client: RawClient, topic: str) -> int | None:
    """None: it has not heard of the topic yet."""
    (shown,) = client.call(MetadataRequest(topics=[MetadataRequestTopic(name=topic)]), version=12).topics
    return int(shown.partitions[0].leader_id) if shown.partitions else None


def follower_that_knows(cluster: ClusterProcess, topic: str, leader_id: int) -> BrokerProcess:
    follower = next(node for node in cluster if node.node_id != leader_id)
    with RawClient(follower.address()) as client:
        wait_for("the topic", lambda: leader_as_told_by(client, topic) == leader_id)
    return follower


def test_who_asks_after_a_kill_hears_of_the_next_leader_instead_of_none(cluster: ClusterProcess) -> None:
    """Told of none, a client may ask again only a second later."""
    topic = make_topic(cluster)
    dead_id = partition(cluster, topic).leader_id
    with RawClient(follower_that_knows(cluster, topic, dead_id).address()) as client:
        cluster[dead_id].kill()
        told_id: int | None = dead_id
        while told_id == dead_id:  # until the survivor has seen its connection break
            asked = time.monotonic()
            told_id = leader_as_told_by(client, topic)
        waited_ms = (time.monotonic() - asked) * 1_000
    assert told_id != NO_LEADER or waited_ms >= ELECTION_WAIT_MS


def test_who_asks_while_nobody_can_be_elected_is_answered(cluster: ClusterProcess) -> None:
    topic = make_topic(cluster)
    survivor = follower_that_knows(cluster, topic, partition(cluster, topic).leader_id)
    with RawClient(survivor.address()) as client:
        for node in cluster:
            if node is not survivor:
                node.kill()
        wait_for("no leader", lambda: leader_as_told_by(client, topic) == NO_LEADER)


def test_leaders_move_before_a_broker_stops(cluster: ClusterProcess) -> None:
    topic = make_topic(cluster)
    leader_id = partition(cluster, topic).leader_id
    assert cluster[leader_id].stop() == 0
    assert partition(cluster, topic).leader_id not in (-1, leader_id)
    assert "stopped cleanly" in cluster[leader_id].log
    cluster[leader_id].start()
    wait_for("a full ISR", lambda: len(partition(cluster, topic).isr_nodes) == 3)


def test_the_controller_hands_over_before_it_stops(cluster: ClusterProcess) -> None:
    controller_id = cluster.controller_id()
    assert cluster[controller_id].stop() == 0
    began = time.monotonic()
    assert cluster.controller_id() != controller_id
    assert time.monotonic() - began < FAILOVER_S
