"""confluent-kafka (librdkafka): its clients with the settings that the features share, and short words for them."""

from __future__ import annotations

from confluent_kafka import (
    OFFSET_BEGINNING,
    Consumer,
    KafkaException,
    Message,
    Producer,
    TopicPartition,
)

from tests.compatibility.python_drivers.common import (
    PATIENCE_S,
    Scene,
    expect_equal,
    wait_until,
)


def producer(scene: Scene, **settings: object) -> Producer:
    given = {name.replace("_", "."): value for name, value in settings.items()}
    return Producer({"bootstrap.servers": scene.bootstrap, "log_level": 0, **given})


def consumer(scene: Scene, **settings: object) -> Consumer:
    """In the scene's group, from the beginning, without auto commit, unless told otherwise."""
    given = {name if name == "on_commit" else name.replace("_", "."): value for name, value in settings.items()}
    basis = {"bootstrap.servers": scene.bootstrap, "group.id": scene.topic, "log_level": 0}
    return Consumer({**basis, "auto.offset.reset": "earliest", "enable.auto.commit": False, **given})


def assigned(scene: Scene, partitions: int = 1, **settings: object) -> Consumer:
    reader = consumer(scene, **settings)
    reader.assign([TopicPartition(scene.topic, index, OFFSET_BEGINNING) for index in range(partitions)])
    return reader


def subscribed(scene: Scene, **settings: object) -> Consumer:
    reader = consumer(scene, **settings)
    reader.subscribe([scene.topic])
    return reader


def send(writer: Producer, topic: str, word: str, count: int, partition: int = 0) -> None:
    for i in range(count):
        writer.produce(topic, f"{word}-{i}".encode(), partition=partition)
    expect_equal(writer.flush(PATIENCE_S), 0, "records left unsent")


def read(reader: Consumer, count: int) -> list[Message]:
    got: list[Message] = []

    def enough() -> bool:
        for message in reader.consume(count - len(got), timeout=0.5):
            if message.error():
                raise KafkaException(message.error())
            got.append(message)
        return len(got) >= count

    wait_until(f"{count} records", enough)
    return got


def values(messages: list[Message]) -> list[str]:
    return [(message.value() or b"").decode() for message in messages]
