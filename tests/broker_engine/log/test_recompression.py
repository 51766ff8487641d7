"""`compression.type` over the wire: what was sent in any codec comes to lie in the topic's, and reads the same."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewTopic,
    ResourceType,
)

from broker_engine.records.batch import Codec, iter_batches, parse_header
from tests.broker_engine.broker_process import BrokerProcess
from tests.broker_engine.log.kafka_tools import dump_log, need_kafka_tools
from tests.broker_engine.log.test_kafka_dump_log import complaints_in

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
RECORDS_PER_CODEC = 50
TIMEOUT_S = 30.0

Sent = tuple[bytes, bytes, list[tuple[str, bytes]]]


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[BrokerProcess]:
    with BrokerProcess(tmp_path / "broker") as broker:
        yield broker


def create_topic(broker: BrokerProcess, name: str, **configs: str) -> None:
    topic = NewTopic(name, 1, 1, config={key.replace("_", "."): value for key, value in configs.items()})
    admin = AdminClient({"bootstrap.servers": broker.address()})
    admin.create_topics([topic])[name].result(TIMEOUT_S)


def alter_topic(broker: BrokerProcess, name: str, key: str, value: str) -> None:
    entry = ConfigEntry(key, value, incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ResourceType.TOPIC, name, incremental_configs=[entry])
    admin = AdminClient({"bootstrap.servers": broker.address()})
    admin.incremental_alter_configs([resource])[resource].result(TIMEOUT_S)


def produce(broker: BrokerProcess, topic: str, codec: str) -> list[Sent]:
    """One batch, of an idempotent producer."""
    producer = Producer(
        {
            "bootstrap.servers": broker.address(),
            "compression.type": codec,
            "enable.idempotence": True,
            "linger.ms": 1000,
        }
    )
    sent: list[Sent] = []
    for number in range(RECORDS_PER_CODEC):
        record: Sent = (b"key-%d" % number, b"value of %s " % codec.encode() * 9, [("h", b"%d" % number), ("h", b"")])
        producer.produce(topic, key=record[0], value=record[1], headers=record[2])
        sent.append(record)
    assert producer.flush(TIMEOUT_S) == 0
    return sent


def consume(broker: BrokerProcess, topic: str, count: int) -> list[Sent]:
    settings = {"group.id": "unused", "enable.auto.commit": False, "check.crcs": True}
    consumer = Consumer({"bootstrap.servers": broker.address(), **settings})
    consumer.assign([TopicPartition(topic, 0, 0)])
    messages = consumer.consume(count, TIMEOUT_S)
    consumer.close()
    assert [message.offset() for message in messages] == list(range(count))
    return [(message.key(), message.value(), message.headers()) for message in messages]


def segment(broker: BrokerProcess, topic: str) -> Path:
    (path,) = broker.data_dir.glob(f"**/{topic}-0/*.log")
    return path


def stored_codecs(broker: BrokerProcess, topic: str) -> list[Codec]:
    return [Codec(parse_header(batch).codec) for batch in iter_batches(segment(broker, topic).read_bytes())]


def test_all_codecs_come_to_lie_in_the_topics_own(broker: BrokerProcess) -> None:
    create_topic(broker, "packed", compression_type="zstd", compression_zstd_level="6")
    sent = [record for codec in CODECS for record in produce(broker, "packed", codec)]
    assert consume(broker, "packed", len(sent)) == sent
    assert set(stored_codecs(broker, "packed")) == {Codec.ZSTD}
    headers = [parse_header(batch) for batch in iter_batches(segment(broker, "packed").read_bytes())]
    assert all(header.producer_id >= 0 and header.base_sequence >= 0 for header in headers)


def test_a_new_compression_type_holds_for_the_next_batch(broker: BrokerProcess) -> None:
    create_topic(broker, "changing")
    sent = produce(broker, "changing", "gzip")
    for name in ("lz4", "uncompressed", "snappy", "producer"):
        alter_topic(broker, "changing", "compression.type", name)
        sent += produce(broker, "changing", "gzip")
    assert consume(broker, "changing", len(sent)) == sent
    in_order = list(dict.fromkeys(stored_codecs(broker, "changing")))
    assert in_order == [Codec.GZIP, Codec.LZ4, Codec.NONE, Codec.SNAPPY]
    assert stored_codecs(broker, "changing")[-1] is Codec.GZIP


@pytest.mark.kafka_peer
def test_kafkas_own_tool_reads_what_we_recompressed(broker: BrokerProcess) -> None:
    need_kafka_tools()
    files = []
    for wanted in ("gzip", "snappy", "lz4", "zstd", "uncompressed"):
        create_topic(broker, wanted, compression_type=wanted)
        for codec in CODECS:
            produce(broker, wanted, codec)
        files.append(segment(broker, wanted))
    said = dump_log(files, "--deep-iteration", "--print-data-log")
    assert not complaints_in(said), said
    assert len(re.findall(r"^\| offset: ", said, re.MULTILINE)) == len(files) * len(CODECS) * RECORDS_PER_CODEC
    assert "isvalid: false" not in said
