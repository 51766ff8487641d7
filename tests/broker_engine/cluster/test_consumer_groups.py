"""Groups of the consumer protocol on three brokers, under a real client: members and commits outlive the coordinator,
and clients of both protocols read side by side while they are being updated.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient, NewTopic

from tests.broker_engine.cluster.cluster_process import ClusterProcess, wait_for
from tests.broker_engine.cluster.test_groups import coordinator_of
from tests.broker_engine.handlers.consumer_calls import describe
from tests.broker_engine.raw_client import RawClient

TOPIC, GROUP, PARTITIONS = "orders", "readers", 6
SETTINGS = {"group.initial.rebalance.delay.ms": "0", "group.consumer.min.heartbeat.interval.ms": "500"}
SETTINGS |= {"group.consumer.heartbeat.interval.ms": "500", "group.consumer.assignment.interval.ms": "200"}


class Readers:
    """Consumers of one group, and what they read together."""

    def __init__(self, cluster: ClusterProcess) -> None:
        self.cluster = cluster
        self.consumers: list[Consumer] = []
        self.seen: Counter[bytes] = Counter()

    def add(self, protocol: str) -> Consumer:
        own = {"group.protocol": protocol}
        if protocol == "classic":
            own |= {"session.timeout.ms": "10000", "partition.assignment.strategy": "cooperative-sticky"}
        common = {"bootstrap.servers": self.cluster.bootstrap, "group.id": GROUP, "auto.offset.reset": "earliest"}
        consumer = Consumer({**common, **own, "enable.auto.commit": False})
        consumer.subscribe([TOPIC])
        self.consumers.append(consumer)
        return consumer

    def turn(self) -> None:
        for consumer in self.consumers:
            for message in consumer.consume(100, timeout=0.1):
                if message.error() is None:
                    self.seen[message.value()] += 1

    def read_until(self, count: int) -> None:
        def is_done() -> bool:
            self.turn()
            return len(self.seen) >= count

        wait_for(f"{count} records", is_done, timeout_s=90)

    def spread_over(self, count: int) -> None:
        """Every reader has its share."""

        def is_spread() -> bool:
            self.turn()
            held = [len(consumer.assignment()) for consumer in self.consumers]
            return sorted(held) == sorted(PARTITIONS // count for _ in range(count))

        wait_for(f"{PARTITIONS} partitions with {count} readers", is_spread, timeout_s=90)

    def close(self) -> None:
        for consumer in self.consumers:
            consumer.close()


def begin(cluster: ClusterProcess) -> None:
    cluster.wait_for_brokers(1, 2, 3)
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap})
    admin.create_topics([NewTopic(TOPIC, PARTITIONS, 3)])[TOPIC].result(30)


def write(cluster: ClusterProcess, start: int, end: int) -> None:
    producer = Producer({"bootstrap.servers": cluster.bootstrap, "acks": "all"})
    for number in range(start, end):
        producer.produce(TOPIC, str(number).encode(), partition=number % PARTITIONS)
    assert producer.flush(30) == 0


def described(cluster: ClusterProcess) -> tuple[str, int, list[int]]:
    """State, epoch, and the protocols of the members: 0 classic, 1 consumer."""
    node = wait_for("a coordinator", lambda: coordinator_of(cluster, GROUP))
    with RawClient(cluster[node].address()) as client:
        group = describe(client, GROUP)
    return group.group_state, group.group_epoch, sorted(member.member_type for member in group.members)


def test_members_of_the_consumer_protocol_outlive_their_coordinator(tmp_path: Path) -> None:
    with ClusterProcess(tmp_path, settings=SETTINGS) as cluster:
        begin(cluster)
        write(cluster, 0, 120)
        readers = Readers(cluster)
        readers.add("consumer")
        readers.add("consumer")
        readers.spread_over(2)
        readers.read_until(120)
        for consumer in readers.consumers:
            consumer.commit(asynchronous=False)
        state, epoch, types = described(cluster)
        assert (state, types) == ("Stable", [1, 1])
        first = wait_for("a coordinator", lambda: coordinator_of(cluster, GROUP))
        cluster[first].kill()
        wait_for("another coordinator", lambda: coordinator_of(cluster, GROUP) not in (None, first))
        write(cluster, 120, 240)
        readers.read_until(240)
        times = {readers.seen[str(number).encode()] for number in range(120, 240)}
        assert times == {1}, "nobody was sent back, and nothing was read twice"
        state, after, types = described(cluster)
        assert (state, after, types) == ("Stable", epoch, [1, 1]), "the group is the one that it was"
        readers.close()


def test_clients_of_both_protocols_share_a_group_while_they_are_updated(tmp_path: Path) -> None:
    with ClusterProcess(tmp_path, settings=SETTINGS) as cluster:
        begin(cluster)
        readers = Readers(cluster)
        old = readers.add("classic")
        write(cluster, 0, 60)
        readers.read_until(60)
        new = readers.add("consumer")
        readers.spread_over(2)
        assert described(cluster)[2] == [0, 1]
        write(cluster, 60, 120)
        readers.read_until(120)
        readers.consumers.remove(old)
        old.close()
        readers.spread_over(1)
        assert described(cluster)[2] == [1]
        back = readers.add("classic")
        readers.spread_over(2)
        readers.consumers.remove(new)
        new.close()
        readers.spread_over(1)
        write(cluster, 120, 180)
        readers.read_until(180)
        assert len(back.assignment()) == PARTITIONS
        readers.close()
