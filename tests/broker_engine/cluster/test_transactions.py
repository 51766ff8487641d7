"""Transactions on three brokers: an outcome that was answered is carried out, whoever dies in between."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from broker_engine.wire.messages.find_coordinator import FindCoordinatorRequest
from tests.broker_engine.cluster.cluster_process import ClusterProcess, wait_for
from tests.broker_engine.handlers.transaction_calls import (
    added,
    describe,
    end,
    started,
    wait_for_state,
    write,
)
from tests.broker_engine.raw_client import RawClient

TOPIC, PARTITIONS = "orders", 6
_TRANSACTION = 1
SETTINGS = {"transaction.state.log.num.partitions": "6", "offsets.topic.num.partitions": "6"}


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[ClusterProcess]:
    with ClusterProcess(tmp_path, settings=SETTINGS) as running:
        running.wait_for_brokers(1, 2, 3)
        yield running
        for node in running:
            assert "Traceback" not in node.log, node.log


def coordinator_of(cluster: ClusterProcess, name: str) -> int | None:
    with RawClient(cluster.running[0].address()) as client:
        response = client.call(FindCoordinatorRequest(coordinator_keys=[name], key_type=_TRANSACTION), 4)
    (found,) = response.coordinators
    return None if found.error_code else int(found.node_id)


def found_coordinator(cluster: ClusterProcess, name: str, *, other_than: int | None = None) -> int:
    def look() -> int | None:
        found = coordinator_of(cluster, name)
        return None if found == other_than else found

    return wait_for(f"a coordinator of {name}", look)


def create(cluster: ClusterProcess, name: str, count: int, factor: int) -> None:
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap})
    admin.create_topics([NewTopic(name, count, factor)])[name].result(30)


def committed_values(cluster: ClusterProcess, topic: str, partition_count: int, count: int) -> list[bytes]:
    """The first `count` values that a read_committed reader gets, sorted."""
    config = {"bootstrap.servers": cluster.bootstrap, "group.id": "readers", "isolation.level": "read_committed"}
    consumer = Consumer({**config, "enable.auto.commit": False, "auto.offset.reset": "earliest"})
    consumer.assign([TopicPartition(topic, index, 0) for index in range(partition_count)])
    values: list[bytes] = []

    def is_done() -> bool:
        values.extend(each.value() or b"" for each in consumer.consume(100, timeout=0.1) if each.error() is None)
        return len(values) >= count

    wait_for(f"{count} committed records of {topic}", is_done, timeout_s=60)
    consumer.close()
    return sorted(values)


def test_a_transaction_outlives_its_coordinator(cluster: ClusterProcess) -> None:
    create(cluster, TOPIC, PARTITIONS, 3)
    producer = Producer({"bootstrap.servers": cluster.bootstrap, "transactional.id": "mover"})
    producer.init_transactions(30)
    for is_commit in (True, False, True):
        producer.begin_transaction()
        for index in range(PARTITIONS):
            producer.produce(TOPIC, b"kept" if is_commit else b"dropped", partition=index)
        assert producer.flush(30) == 0
        if is_commit:
            old = found_coordinator(cluster, "mover")
            cluster[old].kill()
            producer.commit_transaction(60)
            cluster[old].start()
            cluster.wait_for_brokers(1, 2, 3)
        else:
            producer.abort_transaction(30)
    assert committed_values(cluster, TOPIC, PARTITIONS, 2 * PARTITIONS) == [b"kept"] * 2 * PARTITIONS


def test_the_next_coordinator_writes_the_markers_that_the_last_one_could_not(cluster: ClusterProcess) -> None:
    create(cluster, "solo", 3, 1)
    leaders = {index: leader_of(cluster, "solo", index) for index in range(3)}
    name = "mover"
    first = found_coordinator(cluster, name)
    index, away = next((index, leader) for index, leader in leaders.items() if leader != first)
    with RawClient(cluster[first].address()) as client:
        producer = started(client, name)
        with RawClient(cluster[away].address()) as leader:
            # By version 2 the leader itself adds its partition, at a coordinator on another broker.
            assert write(leader, producer, "solo", b"first", partition=index, version=12).error_code == 0
            producer = producer._replace(epoch=end(client, producer, is_commit=True, version=5).producer_epoch)
            added(client, producer, ("solo", index))
            assert write(leader, producer, "solo", b"decided", partition=index).error_code == 0
        cluster[away].kill()
        assert end(client, producer, is_commit=True).error_code == 0
        assert describe(client, name).transaction_state == "PrepareCommit"
        cluster[first].kill()
    cluster[away].start()
    second = found_coordinator(cluster, name, other_than=first)
    with RawClient(cluster[second].address()) as client:
        wait_for_state(client, name, "CompleteCommit")
    assert committed_values(cluster, "solo", 3, 2) == [b"decided", b"first"]


def leader_of(cluster: ClusterProcess, topic: str, index: int) -> int:
    def look() -> int | None:
        for each in cluster.metadata().topics:
            for partition in each.partitions if each.name == topic else ():
                if partition.partition_index == index and partition.leader_id >= 0:
                    return partition.leader_id
        return None

    return wait_for(f"a leader of {topic}-{index}", look)
