"""kafka-console-consumer and kafka-consumer-groups of Apache Kafka, and its formatter on our `__consumer_offsets`."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from tests.broker_engine.broker_process import BrokerProcess
from tests.compatibility.kafka_admin_tools import KafkaTools

pytestmark = pytest.mark.kafka_peer

TOPIC, GROUP = "orders", "readers"


@pytest.fixture
def bootstrap(tmp_path: Path) -> Iterator[str]:
    settings = {"group.initial.rebalance.delay.ms": "0"}
    with BrokerProcess(tmp_path / "broker", settings=settings) as process:
        yield process.address()


def write(bootstrap: str, count: int) -> None:
    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.create_topics([NewTopic(TOPIC, 2, 1)])[TOPIC].result(30)
    producer = Producer({"bootstrap.servers": bootstrap})
    for number in range(count):
        producer.produce(TOPIC, str(number).encode(), partition=number % 2)
    assert producer.flush(30) == 0


def test_the_java_consumer_reads_in_a_group_and_an_operator_sees_moves_and_reads_its_offsets(
    bootstrap: str, tmp_path: Path
) -> None:
    write(bootstrap, 20)
    tools = KafkaTools(bootstrap, tmp_path)
    said = tools.run("consume", "--topic", TOPIC, "--group", GROUP, "--from-beginning", "--max-messages", "20")
    assert sorted(int(line) for line in said.split() if line.isdigit() and int(line) < 20) == list(range(20)), said

    rows = _offsets(tools.run("groups", "--describe", "--group", GROUP))
    assert rows == {(0, 10, 10, 0), (1, 10, 10, 0)}
    assert GROUP in tools.run("groups", "--list")

    reset = ("--reset-offsets", "--group", GROUP, "--topic", TOPIC, "--to-earliest")
    assert "NEW-OFFSET" in tools.run("groups", *reset, "--dry-run")
    tools.run("groups", *reset, "--execute")
    assert _offsets(tools.run("groups", "--describe", "--group", GROUP)) == {(0, 0, 10, 10), (1, 0, 10, 10)}

    formatter = "org.apache.kafka.tools.consumer.OffsetsMessageFormatter"
    shown = tools.run(
        *("consume", "--topic", "__consumer_offsets", "--formatter", formatter, "--from-beginning"),
        *("--timeout-ms", "15000", "--command-property", "enable.auto.commit=false"),
    )
    # It puts no line break behind a record.
    records = [json.JSONDecoder().raw_decode(shown, found.start())[0] for found in re.finditer(r'{"key"', shown)]
    commits = [(record["key"]["data"]["partition"], record["value"]["data"]["offset"]) for record in records]
    assert commits[-2:] in ([(0, 0), (1, 0)], [(1, 0), (0, 0)]), shown

    assert "successful" in tools.run("groups", "--delete", "--group", GROUP)
    assert GROUP not in tools.run("groups", "--list").split()


def _offsets(said: str) -> set[tuple[int, int, int, int]]:
    """(partition, current, end, lag) of each row of --describe."""
    rows = [line.split() for line in said.splitlines() if line.startswith(GROUP)]
    assert rows, said
    return {(int(row[2]), int(row[3]), int(row[4]), int(row[5])) for row in rows}
