"""confluent-kafka (librdkafka 2.16), unmodified: idempotent produce, consume by assignment, admin."""

from __future__ import annotations

import pytest
from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaException, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, ConfigResource, NewTopic, ResourceType

from tests.compatibility.conftest import Access


def create_topic(access: Access, topic: str, partitions: int, **configs: str) -> None:
    admin = AdminClient(access.librdkafka())
    admin.create_topics([NewTopic(topic, num_partitions=partitions, config=configs)])[topic].result(timeout=30)


def produce(access: Access, topic: str, count: int, **config: object) -> None:
    failures: list[object] = []
    producer = Producer({**access.librdkafka(), **config})
    for i in range(count):
        producer.produce(
            topic, value=f"value-{i}".encode(), key=f"key-{i}".encode(), headers=[("n", str(i).encode())],
            on_delivery=lambda error, _: failures.append(error) if error else None,
        )  # fmt: skip
        producer.poll(0)
    assert producer.flush(60) == 0
    assert failures == []


def consume(access: Access, topic: str, partitions: int, count: int, **config: object) -> list[Message]:
    consumer = Consumer({**access.librdkafka(), "group.id": "unused", "enable.auto.commit": False, **config})
    consumer.assign([TopicPartition(topic, p, OFFSET_BEGINNING) for p in range(partitions)])
    messages: list[Message] = []
    try:
        while len(messages) < count:
            batch = consumer.consume(count - len(messages), timeout=30)
            assert batch, f"{len(messages)} of {count} arrived"
            for message in batch:
                assert message.error() is None, message.error()
            messages.extend(batch)
    finally:
        consumer.close()
    return messages


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_idempotent_producer_and_consumer_agree_on_every_record(access: Access, topic: str, codec: str) -> None:
    create_topic(access, topic, partitions=3)
    produce(access, topic, 1_000, **{"enable.idempotence": True, "compression.type": codec})
    messages = consume(access, topic, partitions=3, count=1_000)
    assert sorted(int(m.headers()[0][1]) for m in messages) == list(range(1_000))  # type: ignore[index,arg-type]
    assert all(m.value() == b"value-" + m.headers()[0][1] for m in messages)  # type: ignore[index,operator]


@pytest.mark.parametrize("acks", ["0", "1", "all"])
def test_every_acks_setting_delivers(access: Access, topic: str, acks: str) -> None:
    create_topic(access, topic, partitions=1)
    produce(access, topic, 200, acks=acks)
    assert [m.offset() for m in consume(access, topic, partitions=1, count=200)] == list(range(200))


def test_offsets_for_times_finds_the_first_record_at_or_after_a_time(access: Access, topic: str) -> None:
    create_topic(access, topic, partitions=1)
    producer = Producer(access.librdkafka())
    for i in range(10):
        producer.produce(topic, value=b"x", timestamp=1_700_000_000_000 + i * 1_000, partition=0)
        producer.flush(30)
    consumer = Consumer({**access.librdkafka(), "group.id": "unused"})
    try:
        found = consumer.offsets_for_times([TopicPartition(topic, 0, 1_700_000_004_500)], timeout=30)
        assert found[0].offset == 5
        assert consumer.get_watermark_offsets(TopicPartition(topic, 0), timeout=30) == (0, 10)
    finally:
        consumer.close()


def test_admin_describes_changes_and_deletes(access: Access, topic: str) -> None:
    create_topic(access, topic, partitions=1, **{"retention.ms": "3600000"})
    admin = AdminClient(access.librdkafka())
    resource = ConfigResource(ResourceType.TOPIC, topic)
    configs = admin.describe_configs([resource])[resource].result(timeout=30)
    assert configs["retention.ms"].value == "3600000"
    assert configs["ack.durability"].value == "fsync"
    admin.delete_topics([topic])[topic].result(timeout=30)
    assert topic not in admin.list_topics(timeout=30).topics


def test_a_wrong_password_is_refused(access: Access) -> None:
    if access.username is None:
        return  # nothing to get wrong on a listener without authentication
    config = {**access.librdkafka(), "sasl.password": "wrong"}
    with pytest.raises(KafkaException):
        AdminClient(config).list_topics(timeout=5)
