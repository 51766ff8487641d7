"""Groups on three brokers: what was committed outlives the coordinator, and members find the next one."""

from __future__ import annotations

from pathlib import Path

from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from broker_engine.errors import ErrorCode
from broker_engine.wire.messages.find_coordinator import FindCoordinatorRequest
from broker_engine.wire.messages.heartbeat import HeartbeatRequest
from broker_engine.wire.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestGroup
from tests.broker_engine.cluster.cluster_process import ClusterProcess, wait_for
from tests.broker_engine.raw_client import RawClient

TOPIC, GROUP = "orders", "readers"


def coordinator_of(cluster: ClusterProcess, group: str) -> int | None:
    with RawClient(cluster.running[0].address()) as client:
        response = client.call(FindCoordinatorRequest(coordinator_keys=[group]), 4)
    (found,) = response.coordinators
    return None if found.error_code else int(found.node_id)


def write(cluster: ClusterProcess, count: int) -> None:
    producer = Producer({"bootstrap.servers": cluster.bootstrap, "acks": "all"})
    for number in range(count):
        producer.produce(TOPIC, str(number).encode())
    assert producer.flush(30) == 0


def read(consumer: Consumer, count: int) -> list[int]:
    offsets: list[int] = []

    def is_done() -> bool:
        for message in consumer.consume(100, timeout=0.1):
            if message.error() is None:
                offsets.append(message.offset())
        return len(offsets) >= count

    wait_for(f"{count} records", is_done, timeout_s=60)
    return offsets


def test_commits_and_members_outlive_the_coordinator(tmp_path: Path) -> None:
    with ClusterProcess(tmp_path, settings={"group.initial.rebalance.delay.ms": "0"}) as cluster:
        cluster.wait_for_brokers(1, 2, 3)
        admin = AdminClient({"bootstrap.servers": cluster.bootstrap})
        admin.create_topics([NewTopic(TOPIC, 1, 3)])[TOPIC].result(30)
        write(cluster, 100)
        config = {"bootstrap.servers": cluster.bootstrap, "group.id": GROUP, "enable.auto.commit": False}
        consumer = Consumer({**config, "auto.offset.reset": "earliest", "session.timeout.ms": 10_000})
        consumer.subscribe([TOPIC])
        assert read(consumer, 100) == list(range(100))
        consumer.commit(asynchronous=False)
        first = wait_for("a coordinator", lambda: coordinator_of(cluster, GROUP))
        cluster[first].kill()
        second = wait_for(
            "another coordinator",
            lambda: found if (found := coordinator_of(cluster, GROUP)) not in (None, first) else None,
        )
        assert second != first
        (committed,) = consumer.committed([TopicPartition(TOPIC, 0)], timeout=30)
        assert committed.offset == 100
        write(cluster, 10)
        assert read(consumer, 10) == list(range(100, 110))
        consumer.commit(asynchronous=False)
        consumer.close()


def test_a_coordinator_that_does_not_hear_the_controller_has_offsets_asked_for_again(tmp_path: Path) -> None:
    offsets = OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group_id=GROUP, topics=None)])
    heartbeat = HeartbeatRequest(group_id=GROUP, generation_id=1, member_id="somebody")
    with ClusterProcess(tmp_path) as cluster:
        cluster.wait_for_brokers(1, 2, 3)
        wait_for("a coordinator", lambda: coordinator_of(cluster, GROUP))
        node_id = wait_for("a coordinator that serves", lambda: _serving_coordinator(cluster, offsets))
        for node in cluster:
            if node.node_id != node_id:
                node.kill()
        with RawClient(cluster[node_id].address()) as client:
            wait_for("silence", lambda: client.call(heartbeat, 4).error_code == ErrorCode.NOT_COORDINATOR)
            answer = client.call(offsets, 8).groups[0]
        assert answer.error_code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS


def _serving_coordinator(cluster: ClusterProcess, offsets: OffsetFetchRequest) -> int | None:
    node_id = coordinator_of(cluster, GROUP)
    if node_id is None:
        return None
    with RawClient(cluster[node_id].address()) as client:
        return None if client.call(offsets, 8).groups[0].error_code else node_id
