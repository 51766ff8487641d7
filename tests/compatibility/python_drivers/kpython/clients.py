"""kafka-python: its clients with the settings that the features share, and short words for them."""

from __future__ import annotations

from typing import Any

from kafka import (
    KafkaConsumer,
    KafkaProducer,
    TopicPartition,
)

from tests.compatibility.python_drivers.common import (
    PATIENCE_S,
    Scene,
    wait_until,
)


def producer(scene: Scene, **settings: Any) -> KafkaProducer:
    return KafkaProducer(bootstrap_servers=scene.bootstrap, **settings)


def consumer(scene: Scene, *topics: str, **settings: Any) -> KafkaConsumer:
    basis = {"group_id": scene.topic, "auto_offset_reset": "earliest", "enable_auto_commit": False}
    return KafkaConsumer(*topics, bootstrap_servers=scene.bootstrap, **{**basis, **settings})


def assigned(scene: Scene, partitions: int = 1, **settings: Any) -> KafkaConsumer:
    reader = consumer(scene, **settings)
    reader.assign([TopicPartition(scene.topic, index) for index in range(partitions)])
    return reader


def send(writer: KafkaProducer, topic: str, word: str, count: int, partition: int = 0) -> None:
    for i in range(count):
        writer.send(topic, f"{word}-{i}".encode(), partition=partition)
    writer.flush(PATIENCE_S)


def polled(reader: KafkaConsumer, timeout_ms: int = 200, count: int = 500) -> list[Any]:
    return [record for records in reader.poll(timeout_ms, max_records=count).values() for record in records]


def read(reader: KafkaConsumer, count: int) -> list[Any]:
    got: list[Any] = []

    def enough() -> bool:
        got.extend(polled(reader, count=count - len(got)))
        return len(got) >= count

    wait_until(f"{count} records", enough)
    return got


def values(records: list[Any]) -> list[str]:
    return [record.value.decode() for record in records]
