"""The consumer protocol (KIP-848) under Apache Kafka's own consumer, and its groups under Kafka's own tools."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient, NewTopic

from tests.broker_engine.broker_process import BrokerProcess
from tests.broker_engine.cluster.cluster_process import wait_for
from tests.broker_engine.handlers.consumer_calls import describe
from tests.broker_engine.raw_client import RawClient
from tests.compatibility.kafka_admin_tools import KafkaTools

pytestmark = pytest.mark.kafka_peer

TOPIC, GROUP = "orders", "readers"
NEW = ("--command-property", "group.protocol=consumer")


@pytest.fixture
def bootstrap(tmp_path: Path) -> Iterator[str]:
    settings = {"group.consumer.min.heartbeat.interval.ms": "500", "group.consumer.heartbeat.interval.ms": "500"}
    with BrokerProcess(tmp_path / "broker", settings=settings) as process:
        yield process.address()


def write(bootstrap: str, count: int) -> None:
    producer = Producer({"bootstrap.servers": bootstrap})
    for number in range(count):
        producer.produce(TOPIC, str(number).encode(), partition=number % 2)
    assert producer.flush(30) == 0


def test_the_java_consumer_joins_by_the_consumer_protocol_and_an_operator_sees_its_group(
    bootstrap: str, tmp_path: Path
) -> None:
    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.create_topics([NewTopic(TOPIC, 2, 1)])[TOPIC].result(30)
    write(bootstrap, 20)
    tools = KafkaTools(bootstrap, tmp_path)
    reading = ("--topic", TOPIC, "--group", GROUP, "--from-beginning", "--max-messages", "20", *NEW)
    said = tools.run("consume", *reading)
    assert sorted(int(line) for line in said.split() if line.isdigit() and int(line) < 20) == list(range(20)), said
    with RawClient(bootstrap) as client:
        assert describe(client, GROUP).group_state == "Empty", "it was a group of the consumer protocol"
    rows = [line.split() for line in tools.run("groups", "--describe", "--group", GROUP).splitlines()]
    offsets = {(row[2], row[3], row[5]) for row in rows if row and row[0] == GROUP}
    assert offsets == {("0", "10", "0"), ("1", "10", "0")}, rows

    with _living_member(bootstrap) as client_id:
        state = tools.run("groups", "--describe", "--group", GROUP, "--state", "--verbose")
        assert "Stable" in state, state
        assert "uniform" in state, state
        members = tools.run("groups", "--describe", "--group", GROUP, "--members", "--verbose")
        assert client_id in members, members
        assert "orders:0,1" in members.replace("orders(0,1)", "orders:0,1"), members
        types = tools.run("groups", "--list", "--type")
        assert [line.split() for line in types.splitlines() if line.startswith(GROUP)] == [[GROUP, "Consumer"]], types
    assert "successful" in tools.run("groups", "--delete", "--group", GROUP)


@contextmanager
def _living_member(bootstrap: str) -> Iterator[str]:
    """A consumer that holds all partitions; its heartbeats go on without polls."""
    config = {"bootstrap.servers": bootstrap, "group.id": GROUP, "group.protocol": "consumer"}
    consumer = Consumer({**config, "client.id": "living", "auto.offset.reset": "earliest"})
    consumer.subscribe([TOPIC])

    def is_assigned() -> bool:
        consumer.poll(0.1)
        return len(consumer.assignment()) == 2

    try:
        wait_for("partitions", is_assigned, timeout_s=60)
        yield "living"
    finally:
        consumer.close()
