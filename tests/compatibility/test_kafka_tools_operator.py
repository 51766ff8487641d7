"""Kafka's own commands against us, as an operator meets them; docs/compatibility.md has the table of commands.

kafka-consumer-groups, -groups, -get-offsets, -delete-records, -configs, -verifiable-producer and -consumer,
-console-consumer with the formatters of the internal topics, -transactions, -features. One JVM runs them all.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaException, Producer

from tests.broker_engine.broker_process import BrokerProcess
from tests.broker_engine.cluster.cluster_process import wait_for
from tests.compatibility.kafka_tools_jvm import ToolsJvm, rows
from tests.compatibility.observer import Observer

pytestmark = pytest.mark.kafka_peer

FORMATTERS = "org.apache.kafka.tools.consumer"


@pytest.fixture(scope="module")
def bootstrap(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    settings = {"group.initial.rebalance.delay.ms": "0"}
    with BrokerProcess(tmp_path_factory.mktemp("tools") / "broker", settings=settings) as process:
        yield process.address()


@pytest.fixture(scope="module")
def tools(bootstrap: str) -> Iterator[ToolsJvm]:
    with ToolsJvm(bootstrap) as jvm:
        yield jvm


@pytest.fixture
def observer(bootstrap: str) -> Observer:
    return Observer(bootstrap)


@pytest.fixture
def topic(request: pytest.FixtureRequest, observer: Observer) -> str:
    """Ten records in each of two partitions."""
    name = re.sub(r"\W", "-", request.node.name)[:60]
    observer.create({name: 2})
    for partition in range(2):
        observer.seed(name, partition, [f"value-{i}".encode() for i in range(10)])
    return name


def committed(observer: Observer, group: str, topic: str) -> list[int | None]:
    return [observer.committed(group, topic, partition) for partition in range(2)]


def read_all(bootstrap: str, topic: str, **settings: object) -> Consumer:
    """A member that has read and committed everything, and stays."""
    consumer = Consumer(
        {"bootstrap.servers": bootstrap, "group.id": topic, "auto.offset.reset": "earliest", **settings}
    )
    consumer.subscribe([topic])
    seen = 0
    while seen < 20:
        message = consumer.poll(30)
        assert message is not None
        assert message.error() is None, message.error()
        seen += 1
    consumer.commit(asynchronous=False)
    return consumer


# -- groups


def test_an_operator_lists_describes_and_deletes_a_group(tools: ToolsJvm, bootstrap: str, topic: str) -> None:
    member = read_all(bootstrap, topic)
    assert topic in tools.run("consumer-groups", "--list").split()
    assert {row["STATE"] for row in rows(tools.run("consumer-groups", "--list", "--state"))} >= {"Stable"}
    assert topic in tools.run("groups", "--list", "--consumer").split()
    lags = [row for row in rows(tools.run("consumer-groups", "--describe", "--group", topic)) if row["GROUP"] == topic]
    assert sorted((row["PARTITION"], row["CURRENT-OFFSET"], row["LAG"]) for row in lags) == [
        ("0", "10", "0"),
        ("1", "10", "0"),
    ]
    shown = tools.run("consumer-groups", "--describe", "--group", topic, "--members", "--verbose")
    assert f"{topic}(0,1)" in shown or f"{topic}(0), {topic}(1)" in shown or f"{topic}:0,1" in shown, shown
    (state,) = rows(tools.run("consumer-groups", "--describe", "--group", topic, "--state"))
    assert (state["GROUP"], state["COORDINATOR"]) == (topic, bootstrap)
    assert "Stable" in state.values()
    said = tools.run("consumer-groups", "--delete", "--group", topic)
    assert "is not empty" in said, said
    member.close()
    assert "was successful" in tools.run("consumer-groups", "--delete", "--group", topic)
    assert topic not in tools.run("consumer-groups", "--list").split()


def test_an_operator_moves_a_groups_offsets_in_every_way(
    tools: ToolsJvm, bootstrap: str, observer: Observer, topic: str, tmp_path: Path
) -> None:
    read_all(bootstrap, topic).close()
    reset = ("--reset-offsets", "--group", topic, "--topic", topic)
    tools.run("consumer-groups", *reset, "--to-earliest", "--dry-run")
    assert committed(observer, topic, topic) == [10, 10], "a dry run changes nothing"
    for way, wanted in (
        (("--to-earliest",), [0, 0]),
        (("--to-latest",), [10, 10]),
        (("--shift-by", "-3"), [7, 7]),
        (("--to-offset", "5"), [5, 5]),
        (("--to-current",), [5, 5]),
        (("--by-duration", "PT1H"), [0, 0]),
        (("--to-datetime", "2100-01-01T00:00:00.000"), [10, 10]),
    ):
        tools.run("consumer-groups", *reset, *way, "--execute")
        assert committed(observer, topic, topic) == wanted, way
    one = ("--reset-offsets", "--group", topic, "--topic", f"{topic}:1")
    tools.run("consumer-groups", *one, "--to-offset", "4", "--execute")
    assert committed(observer, topic, topic) == [10, 4]

    exported = tools.run("consumer-groups", *reset, "--to-offset", "6", "--export", "--dry-run")
    plan = tmp_path / "offsets.csv"
    plan.write_text("\n".join(line for line in exported.splitlines() if line.startswith(f'"{topic}"')) + "\n")
    assert len(plan.read_text().splitlines()) == 2, exported
    tools.run("consumer-groups", "--reset-offsets", "--group", topic, "--from-file", str(plan), "--execute")
    assert committed(observer, topic, topic) == [6, 6]

    tools.run("consumer-groups", "--delete-offsets", "--group", topic, "--topic", topic)
    assert committed(observer, topic, topic) == [None, None]


# -- offsets and records


def test_offsets_are_shown_and_records_deleted(tools: ToolsJvm, observer: Observer, topic: str, tmp_path: Path) -> None:
    plan = tmp_path / "records.json"
    plan.write_text(json.dumps({"version": 1, "partitions": [{"topic": topic, "partition": 1, "offset": 4}]}))
    assert "low_watermark: 4" in tools.run("delete-records", "--offset-json-file", str(plan))
    assert observer.start_offset(topic, 1) == 4
    for time, wanted in (("earliest", [0, 4]), ("latest", [10, 10]), ("0", [0, 4])):
        said = tools.run("get-offsets", "--topic", topic, "--time", time)
        assert said.split() == [f"{topic}:{index}:{offset}" for index, offset in enumerate(wanted)]


def test_configs_of_topics_brokers_and_groups(tools: ToolsJvm, topic: str) -> None:
    entity = ("--entity-type", "topics", "--entity-name", topic)
    tools.run("configs", "--alter", *entity, "--add-config", "retention.ms=60000")
    assert "retention.ms=60000" in tools.run("configs", "--describe", *entity)
    tools.run("configs", "--alter", *entity, "--delete-config", "retention.ms")
    assert "retention.ms" not in tools.run("configs", "--describe", *entity)
    broker = ("--entity-type", "brokers", "--entity-name", "1")
    assert "offsets.topic.num.partitions=50" in tools.run("configs", "--describe", *broker, "--all")


def test_a_groups_config_is_changed_and_changed_back(tools: ToolsJvm, topic: str) -> None:
    entity = ("--entity-type", "groups", "--entity-name", topic)
    tools.run("configs", "--alter", *entity, "--add-config", "consumer.session.timeout.ms=50000")
    assert "consumer.session.timeout.ms=50000" in tools.run("configs", "--describe", *entity)
    tools.run("configs", "--alter", *entity, "--delete-config", "consumer.session.timeout.ms")
    assert "consumer.session.timeout.ms=50000" not in tools.run("configs", "--describe", *entity)


# -- load that counts itself, and lines typed in


def test_lines_that_are_typed_in_are_stored_and_shown(tools: ToolsJvm, observer: Observer, topic: str) -> None:
    name = f"{topic}-typed"
    observer.create({name: 1})
    tools.run("console-producer", "--topic", name, stdin="first\nsecond\n")
    assert observer.values(name) == ["first", "second"]
    shown = tools.run("console-consumer", "--topic", name, "--from-beginning", "--max-messages", "2")
    assert [line for line in shown.splitlines() if line in ("first", "second")] == ["first", "second"], shown


def events_of(said: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in said.splitlines() if line.startswith("{")]


def test_the_verifiable_producer_and_consumer_agree(tools: ToolsJvm, observer: Observer, topic: str) -> None:
    name = f"{topic}-counted"
    observer.create({name: 1})
    said = tools.run_alone("verifiable-producer", "--topic", name, "--max-messages", "50", "--acks", "-1")
    assert [event["acked"] for event in events_of(said) if event["name"] == "tool_data"] == [50], said
    heard = tools.run_alone("verifiable-consumer", "--topic", name, "--group-id", name, "--max-messages", "50")
    assert sum(event["count"] for event in events_of(heard) if event["name"] == "records_consumed") == 50, heard
    assert observer.committed(name, name) == 50


# -- the internal topics, decoded by Kafka's own formatters


def decoded(tools: ToolsJvm, topic: str, formatter: str) -> list[dict[str, dict[str, object]]]:
    said = tools.run(
        *("console-consumer", "--topic", topic, "--formatter", f"{FORMATTERS}.{formatter}", "--from-beginning"),
        *("--timeout-ms", "6000", "--command-property", "enable.auto.commit=false"),
    )
    # It puts no line break behind a record.
    return [json.JSONDecoder().raw_decode(said, found.start())[0] for found in re.finditer(r'{"key"', said)]


def test_kafkas_formatters_decode_offsets_and_groups(tools: ToolsJvm, bootstrap: str, topic: str) -> None:
    member = read_all(bootstrap, topic, **{"client.id": "shown"})
    offsets = decoded(tools, "__consumer_offsets", "OffsetsMessageFormatter")
    mine = [record["value"]["data"] for record in offsets if record["key"]["data"]["group"] == topic]
    assert [value["offset"] for value in mine[-2:]] == [10, 10]  # type: ignore[index]
    groups = decoded(tools, "__consumer_offsets", "GroupMetadataMessageFormatter")
    (last,) = [record["value"]["data"] for record in groups if record["key"]["data"]["group"] == topic][-1:]
    assert last["protocolType"] == "consumer"
    assert [each["clientId"] for each in last["members"]] == ["shown"]  # type: ignore[attr-defined]
    member.close()


# -- transactions


def open_transaction(bootstrap: str, topic: str) -> Producer:
    producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": topic, "log_level": 0})
    producer.init_transactions(30)
    producer.begin_transaction()
    producer.produce(topic, "open", partition=0)
    assert producer.flush(30) == 0
    return producer


def test_an_operator_sees_and_aborts_a_transaction(
    tools: ToolsJvm, bootstrap: str, observer: Observer, topic: str
) -> None:
    producer = open_transaction(bootstrap, topic)
    listed = {row["TransactionalId"]: row for row in rows(tools.run("transactions", "list"))}
    assert listed[topic]["TransactionState"] == "Ongoing"
    (shown,) = rows(tools.run("transactions", "describe", "--transactional-id", topic))
    assert (shown["TransactionState"], shown["TopicPartitions"]) == ("Ongoing", f"{topic}-0")
    (state,) = rows(tools.run("transactions", "describe-producers", "--topic", topic, "--partition", "0"))
    assert (state["ProducerId"], state["CurrentTransactionStartOffset"]) == (listed[topic]["ProducerId"], "10")
    assert rows(tools.run("transactions", "find-hanging", "--broker-id", "1")) == [], "it is young and known"
    assert observer.committed_values(topic) == [f"value-{i}" for i in range(10)]
    tools.run("transactions", "abort", "--topic", topic, "--partition", "0", "--start-offset", "10")
    assert observer.markers(topic) == ["abort"]
    (state,) = rows(tools.run("transactions", "describe-producers", "--topic", topic, "--partition", "0"))
    assert state["CurrentTransactionStartOffset"] == "None"
    producer.abort_transaction(30)  # the coordinator still holds it open: an operator's abort is for the partition only


def test_an_operator_ends_a_transaction_by_its_id(
    tools: ToolsJvm, bootstrap: str, observer: Observer, topic: str
) -> None:
    producer = open_transaction(bootstrap, topic)
    tools.run("transactions", "forceTerminateTransaction", "--transactionalId", topic)
    wait_for("the marker", lambda: observer.markers(topic) == ["abort"])
    with pytest.raises(KafkaException):
        producer.commit_transaction(30)


def test_kafkas_formatter_decodes_the_transaction_log(tools: ToolsJvm, bootstrap: str, topic: str) -> None:
    producer = open_transaction(bootstrap, topic)
    producer.commit_transaction(30)
    records = decoded(tools, "__transaction_state", "TransactionLogMessageFormatter")
    mine = [record["value"]["data"] for record in records if record["key"]["data"]["transactionalId"] == topic]
    assert mine[0]["producerEpoch"] == 0
    partitions = [part for data in mine for part in data["transactionPartitions"] or []]  # type: ignore[attr-defined]
    assert {"topic": topic, "partitionIds": [0]} in partitions


def test_transaction_version_two_is_switched_on_and_off(tools: ToolsJvm) -> None:
    def level() -> str:
        (line,) = [line for line in tools.run("features", "describe").splitlines() if "transaction.version" in line]
        return line

    assert "FinalizedVersionLevel: 2" not in level(), "off by default: Flink's recovery needs it so"
    tools.run("features", "upgrade", "--feature", "transaction.version=2")
    assert "FinalizedVersionLevel: 2" in level()
    tools.run("features", "downgrade", "--feature", "transaction.version=1")
    assert "FinalizedVersionLevel: 1" in level()
