"""aiokafka: its clients with the settings that the features share, and short words for them."""

from __future__ import annotations

from typing import Any

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition

from tests.compatibility.python_drivers.common import (
    Scene,
)


def producer(scene: Scene, **settings: Any) -> AIOKafkaProducer:
    return AIOKafkaProducer(bootstrap_servers=scene.bootstrap, **settings)


def consumer(scene: Scene, *topics: str, **settings: Any) -> AIOKafkaConsumer:
    basis = {"group_id": scene.topic, "auto_offset_reset": "earliest", "enable_auto_commit": False}
    return AIOKafkaConsumer(*topics, bootstrap_servers=scene.bootstrap, **{**basis, **settings})


def assigned(scene: Scene, partitions: int = 1, **settings: Any) -> AIOKafkaConsumer:
    reader = consumer(scene, **settings)
    reader.assign([TopicPartition(scene.topic, index) for index in range(partitions)])
    return reader


async def send(writer: AIOKafkaProducer, topic: str, word: str, count: int, partition: int = 0) -> None:
    for i in range(count):
        await writer.send(topic, f"{word}-{i}".encode(), partition=partition)
    await writer.flush()


async def read(reader: AIOKafkaConsumer, count: int) -> list[Any]:
    return [await reader.getone() for _ in range(count)]


def values(records: list[Any]) -> list[str]:
    return [record.value.decode() for record in records]
