"""librdkafka's transactional producer against one broker: commit, abort, a second producer, a transaction too long."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition

from tests.broker_engine.broker_process import BrokerProcess
from tests.broker_engine.cluster.cluster_process import wait_for
from tests.broker_engine.handlers.calls import create
from tests.broker_engine.handlers.transaction_calls import wait_for_state
from tests.broker_engine.raw_client import RawClient

SETTINGS = {
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "50",
    "transaction.state.log.num.partitions": "2",
    "offsets.topic.num.partitions": "2",
    "group.initial.rebalance.delay.ms": "0",
}


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    path: Path = tmp_path_factory.mktemp("client") / "broker"
    with BrokerProcess(path, settings=SETTINGS) as process:
        yield process
        assert "Traceback" not in process.log, process.log


@pytest.fixture
def topic(broker: BrokerProcess) -> str:
    with RawClient(broker.address()) as client:
        return create(client, partitions=2)


def started(broker: BrokerProcess, name: str, **config: int) -> Producer:
    settings = {f"transaction.{key}".replace("_", "."): value for key, value in config.items()}
    producer = Producer({"bootstrap.servers": broker.address(), "transactional.id": name, **settings})
    producer.init_transactions(30)
    return producer


def send(producer: Producer, topic: str, *values: bytes) -> None:
    for number, value in enumerate(values):
        producer.produce(topic, value, partition=number % 2)
    assert producer.flush(30) == 0


def consumer_of(broker: BrokerProcess, group: str = "readers") -> Consumer:
    config = {"bootstrap.servers": broker.address(), "group.id": group, "isolation.level": "read_committed"}
    return Consumer({**config, "enable.auto.commit": False, "auto.offset.reset": "earliest"})


def committed_values(broker: BrokerProcess, topic: str, count: int) -> list[bytes]:
    consumer = consumer_of(broker)
    consumer.assign([TopicPartition(topic, 0, 0), TopicPartition(topic, 1, 0)])
    values: list[bytes] = []

    def is_done() -> bool:
        values.extend(each.value() or b"" for each in consumer.consume(100, timeout=0.1) if each.error() is None)
        return len(values) >= count

    wait_for(f"{count} committed records", is_done)
    consumer.close()
    return sorted(values)


def test_what_is_committed_is_read_and_what_is_aborted_is_not(broker: BrokerProcess, topic: str) -> None:
    producer = started(broker, "plain")
    for number in range(6):
        producer.begin_transaction()
        value = str(number).encode()
        send(producer, topic, value, value)
        if number % 2:
            producer.commit_transaction(30)
        else:
            producer.abort_transaction(30)
    assert committed_values(broker, topic, 6) == [b"1", b"1", b"3", b"3", b"5", b"5"]


def test_a_second_producer_of_the_same_id_takes_over(broker: BrokerProcess, topic: str) -> None:
    first = started(broker, "taken")
    first.begin_transaction()
    send(first, topic, b"lost")
    second = started(broker, "taken")
    second.begin_transaction()
    send(second, topic, b"kept")
    second.commit_transaction(30)
    with pytest.raises(KafkaException) as caught:
        first.commit_transaction(30)
    error = caught.value.args[0]
    assert error.fatal()
    assert error.code() in (KafkaError._FENCED, KafkaError.PRODUCER_FENCED, KafkaError.INVALID_PRODUCER_EPOCH)
    assert committed_values(broker, topic, 1) == [b"kept"]


def test_a_producer_that_was_too_slow_cannot_commit(broker: BrokerProcess, topic: str) -> None:
    slow = started(broker, "slow", timeout_ms=1_000)
    slow.begin_transaction()
    send(slow, topic, b"late")
    with RawClient(broker.address()) as client:
        wait_for_state(client, "slow", "CompleteAbort")
    with pytest.raises(KafkaException) as caught:
        slow.commit_transaction(30)
    assert caught.value.args[0].fatal() or caught.value.args[0].txn_requires_abort()
    after = started(broker, "slow")
    after.begin_transaction()
    send(after, topic, b"kept")
    after.commit_transaction(30)
    assert committed_values(broker, topic, 1) == [b"kept"]


def test_offsets_are_committed_with_what_was_made_of_them(broker: BrokerProcess, topic: str) -> None:
    producer = started(broker, "copier")
    producer.begin_transaction()
    send(producer, topic, b"a", b"b")
    producer.commit_transaction(30)
    with RawClient(broker.address()) as client:
        target = create(client, partitions=2)
    consumer = consumer_of(broker, "copiers")
    consumer.subscribe([topic])
    messages: list[Message] = []

    def is_read() -> bool:
        messages.extend(each for each in consumer.consume(10, timeout=0.1) if each.error() is None)
        return len(messages) >= 2

    wait_for("both records", is_read)
    for is_commit in (False, True):
        producer.begin_transaction()
        send(producer, target, *(each.value() or b"" for each in messages))
        positions = consumer.position(consumer.assignment())
        producer.send_offsets_to_transaction(positions, consumer.consumer_group_metadata(), 30)
        producer.commit_transaction(30) if is_commit else producer.abort_transaction(30)
        found = consumer.committed(consumer.assignment(), timeout=30)
        assert [each.offset >= 0 for each in found] == [is_commit, is_commit]
    consumer.close()
    assert committed_values(broker, target, 2) == [b"a", b"b"]
