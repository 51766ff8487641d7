"""confluent-kafka's read_committed consumers, on one broker and on three of which one is killed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from broker_engine.wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from tests.broker_engine.broker_process import BrokerProcess
from tests.broker_engine.cluster.cluster_process import ClusterProcess, wait_for
from tests.broker_engine.raw_client import RawClient

TOPIC = "transfers"
PARTITIONS = 3


def make_topic(bootstrap: str, replicas: int) -> None:
    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.create_topics([NewTopic(TOPIC, PARTITIONS, replicas)])[TOPIC].result(30)


def transactional(bootstrap: str, name: str) -> Producer:
    producer = Producer(
        {
            "bootstrap.servers": bootstrap,
            "transactional.id": name,
            "transaction.timeout.ms": 30_000,
            "linger.ms": 1,
            "retry.backoff.ms": 50,
        }
    )
    producer.init_transactions(60)
    return producer


def write(producer: Producer, number: int, *, is_commit: bool) -> None:
    """One record for each partition: all of them are read, or none."""
    producer.begin_transaction()
    for partition in range(PARTITIONS):
        producer.produce(TOPIC, b"%d" % number, partition=partition)
    if is_commit:
        end(producer.commit_transaction)
    else:
        end(producer.abort_transaction)


def end(call: Any) -> None:
    def is_ended() -> bool:
        try:
            call(30)
        except KafkaException as error:
            if not error.args[0].retriable():
                raise
            return False
        return True

    wait_for("the end of a transaction", is_ended, timeout_s=90)


@contextmanager
def reader(bootstrap: str, isolation: str) -> Iterator[Consumer]:
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": f"{isolation}-reader",
            "isolation.level": isolation,
            "enable.auto.commit": False,
            "auto.offset.reset": "earliest",
        }
    )
    consumer.assign([TopicPartition(TOPIC, index, 0) for index in range(PARTITIONS)])
    try:
        yield consumer
    finally:
        consumer.close()


def read(consumer: Consumer, count: int) -> dict[int, list[int]]:
    """The numbers by partition, once there are so many in each."""
    found: dict[int, list[int]] = {index: [] for index in range(PARTITIONS)}

    def is_complete() -> bool:
        for message in consumer.consume(500, timeout=0.2):
            if message.error() is None:
                found[message.partition()].append(int(message.value()))
        return all(len(numbers) >= count for numbers in found.values())

    wait_for(f"{count} records in each partition", is_complete, timeout_s=60)
    return found


def test_readers_of_one_broker_see_what_is_committed_in_order(tmp_path: Path) -> None:
    with BrokerProcess(tmp_path / "broker") as broker:
        bootstrap = broker.address()
        make_topic(bootstrap, 1)
        producer = transactional(bootstrap, "writer")
        with reader(bootstrap, "read_committed") as committed, reader(bootstrap, "read_uncommitted") as everything:
            for number in range(20):
                write(producer, number, is_commit=number % 3 != 0)
            expected = [number for number in range(20) if number % 3 != 0]
            assert read(committed, len(expected)) == dict.fromkeys(range(PARTITIONS), expected)
            seen = read(everything, len(expected))
            assert all(set(expected) <= set(numbers) for numbers in seen.values())
            producer.begin_transaction()
            producer.produce(TOPIC, b"99", partition=0)
            producer.flush(30)
            wait_for("the open record", lambda: any(m.value() == b"99" for m in everything.consume(10, timeout=0.2)))
            assert [m.value() for m in committed.consume(10, timeout=0.5)] == []
            producer.commit_transaction(30)
            wait_for("the committed record", lambda: any(m.value() == b"99" for m in committed.consume(1, timeout=1)))


def leader_of(cluster: ClusterProcess, partition: int) -> int:
    with RawClient(cluster.running[0].address()) as client:
        (topic,) = client.call(MetadataRequest(topics=[MetadataRequestTopic(name=TOPIC)]), 12).topics
    leaders = {each.partition_index: each.leader_id for each in topic.partitions}
    return int(leaders[partition])


@pytest.mark.slow
def test_readers_see_each_committed_transaction_once_though_a_leader_is_killed(tmp_path: Path) -> None:
    """A killed leader may have coordinated the transactions, too: what was not decided is told to the client."""
    with ClusterProcess(tmp_path) as cluster:
        cluster.wait_for_brokers(1, 2, 3)
        make_topic(cluster.bootstrap, 3)
        producer = transactional(cluster.bootstrap, "writer")
        expected = []
        for number in range(16):
            if number == 8:
                leader = cluster[leader_of(cluster, number % PARTITIONS)]
                leader.kill()
                leader.start()
            try:
                write(producer, number, is_commit=number % 4 != 0)
            except KafkaException as error:
                if not error.args[0].txn_requires_abort():
                    raise
                end(producer.abort_transaction)
                write(producer, number, is_commit=number % 4 != 0)
            if number % 4 != 0:
                expected.append(number)
        with reader(cluster.bootstrap, "read_committed") as committed:
            assert read(committed, len(expected)) == dict.fromkeys(range(PARTITIONS), expected)
