"""confluent-kafka (librdkafka): one reader: regex, pause, seek, commits, and where it begins without an offset."""

from __future__ import annotations

import re
import tempfile
from pathlib import Path

from confluent_kafka import (
    OFFSET_BEGINNING,
    OFFSET_END,
    Consumer,
    KafkaException,
    Message,
    TopicPartition,
)

from tests.compatibility.python_drivers.common import (
    PATIENCE_S,
    Said,
    Scene,
    expect_equal,
    names_of,
    wait_until,
)
from tests.compatibility.python_drivers.confluent.clients import (
    assigned,
    consumer,
    producer,
    read,
    subscribed,
    values,
)


def regex(scene: Scene) -> Said:
    reader = consumer(scene)
    reader.subscribe([f"^{re.escape(scene.topic)}-[ab]".replace("\\-", "-")])
    expect_equal(sorted({message.topic() for message in read(reader, 10)}), names_of(scene.topic), "topics read")
    reader.close()
    return None


def pause_resume(scene: Scene) -> Said:
    reader = assigned(scene, 2)
    second = TopicPartition(scene.topic, 1)
    reader.pause([second])
    expect_equal({message.partition() for message in read(reader, 5)}, {0}, "partitions read while 1 was paused")
    assert reader.poll(0.3) is None, "a paused partition was read"
    reader.resume([second])
    expect_equal({message.partition() for message in read(reader, 5)}, {1}, "partitions read then")
    reader.close()
    return None


def seek(scene: Scene) -> Said:
    reader = assigned(scene)
    read(reader, 1)
    for offset, wanted in ((7, [7, 8, 9]), (OFFSET_BEGINNING, [0, 1, 2])):
        reader.seek(TopicPartition(scene.topic, 0, offset))
        expect_equal([message.offset() for message in read(reader, 3)], wanted, f"after seek({offset})")
    reader.seek(TopicPartition(scene.topic, 0, OFFSET_END))
    assert reader.poll(0.3) is None, "there is nothing behind the end"
    reader.close()
    return None


def outside_store(scene: Scene) -> Said:
    with tempfile.TemporaryDirectory() as folder:
        store = Path(folder) / "offset"
        first = subscribed(scene)
        for message in read(first, 5):
            store.write_text(str((message.offset() or 0) + 1))
        first.close()
        stored = int(store.read_text())
    again = consumer(scene)

    def from_store(reader: Consumer, partitions: list[TopicPartition]) -> None:
        for each in partitions:
            each.offset = stored
        reader.assign(partitions)

    again.subscribe([scene.topic], on_assign=from_store)
    expect_equal(read(again, 5)[0].offset(), stored, "the first offset after the restart")
    again.close()
    return None


# -- commits


def commit_auto(scene: Scene) -> Said:
    reader = subscribed(scene, enable_auto_commit=True, auto_commit_interval_ms=100)
    read(reader, 10)
    reader.poll(0.3)
    reader.close()
    return None


def commit_sync(scene: Scene) -> Said:
    reader = subscribed(scene)
    read(reader, 10)
    reader.commit(asynchronous=False)
    reader.commit(offsets=[TopicPartition(scene.topic, 0, 4)], asynchronous=False)
    reader.close()
    return None


def commit_async(scene: Scene) -> Said:
    heard: list[object] = []
    reader = subscribed(scene, on_commit=lambda error, _: heard.append(error))
    read(reader, 10)
    reader.commit(offsets=[TopicPartition(scene.topic, 0, 6)], asynchronous=True)

    def called() -> bool:
        reader.poll(0.05)
        return bool(heard)

    wait_until("the callback", called)
    expect_equal(heard, [None], "what the callback heard")
    reader.close()
    return None


# -- where a reader without an offset begins


def reset_earliest(scene: Scene, start: int) -> Said:
    reader = subscribed(scene)
    expect_equal(read(reader, 5)[0].offset(), start, "the first offset")
    reader.close()
    return None


def reset_latest(scene: Scene) -> Said:
    reader, writer = subscribed(scene, auto_offset_reset="latest"), producer(scene)
    got: list[Message] = []

    def later() -> bool:
        writer.produce(scene.topic, "later", partition=0)
        writer.flush(PATIENCE_S)
        got.extend(reader.consume(10, timeout=0.2))
        return bool(got)

    wait_until("a record that is written later", later)
    expect_equal(values(got)[0], "later", "the first record")
    reader.close()
    return None


def reset_none(scene: Scene) -> Said:
    reader = subscribed(scene, auto_offset_reset="error")
    try:
        read(reader, 1)
    except KafkaException as error:
        expect_equal(error.args[0].name(), "_AUTO_OFFSET_RESET", "the error")
        return None
    finally:
        reader.close()
    raise AssertionError("no error was raised")
