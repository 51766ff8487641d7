"""kafka-python: one reader: regex, pause, seek, commits, and where it begins without an offset."""

from __future__ import annotations

import re
import tempfile
from pathlib import Path
from typing import Any

from kafka import (
    ConsumerRebalanceListener,
    OffsetAndMetadata,
    TopicPartition,
)
from kafka.errors import NoOffsetForPartitionError, OffsetOutOfRangeError

from tests.compatibility.python_drivers.common import (
    PATIENCE_S,
    Said,
    Scene,
    expect_equal,
    names_of,
    wait_until,
)
from tests.compatibility.python_drivers.kpython.clients import assigned, consumer, polled, producer, read, values


def regex(scene: Scene) -> Said:
    reader = consumer(scene)
    reader.subscribe(pattern=f"^{re.escape(scene.topic)}-[ab]$")
    expect_equal(sorted({record.topic for record in read(reader, 10)}), names_of(scene.topic), "topics read")
    reader.close()
    return None


def pause_resume(scene: Scene) -> Said:
    reader = assigned(scene, 2)
    second = TopicPartition(scene.topic, 1)
    reader.pause(second)
    expect_equal({record.partition for record in read(reader, 5)}, {0}, "partitions read while 1 was paused")
    assert not polled(reader, 300), "a paused partition was read"
    reader.resume(second)
    expect_equal({record.partition for record in read(reader, 5)}, {1}, "partitions read then")
    reader.close()
    return None


def seek(scene: Scene) -> Said:
    partition = TopicPartition(scene.topic, 0)
    reader = assigned(scene)
    reader.seek(partition, 7)
    expect_equal([record.offset for record in read(reader, 3)], [7, 8, 9], "after seek(7)")
    reader.seek_to_beginning(partition)
    expect_equal(read(reader, 10)[0].offset, 0, "after seek_to_beginning")
    reader.seek_to_end(partition)
    expect_equal(reader.position(partition), 10, "after seek_to_end")
    reader.close()
    return None


def outside_store(scene: Scene) -> Said:
    with tempfile.TemporaryDirectory() as folder:
        store = Path(folder) / "offset"
        first = consumer(scene, scene.topic)
        for record in read(first, 5):
            store.write_text(str(record.offset + 1))
        first.close()
        stored = int(store.read_text())
    again = consumer(scene)

    class FromStore(ConsumerRebalanceListener):  # type: ignore[misc]
        def on_partitions_revoked(self, revoked: Any) -> None: ...

        def on_partitions_assigned(self, assigned: Any) -> None:
            for each in assigned:
                again.seek(each, stored)

    again.subscribe([scene.topic], listener=FromStore())
    expect_equal(read(again, 5)[0].offset, stored, "the first offset after the restart")
    again.close()
    return None


# -- commits


def commit_auto(scene: Scene) -> Said:
    reader = consumer(scene, scene.topic, enable_auto_commit=True, auto_commit_interval_ms=100)
    read(reader, 10)
    polled(reader, 300)
    reader.close()
    return None


def commit_sync(scene: Scene) -> Said:
    reader = consumer(scene, scene.topic)
    read(reader, 10)
    reader.commit()
    reader.commit({TopicPartition(scene.topic, 0): OffsetAndMetadata(4, "note", -1)})
    reader.close()
    return None


def commit_async(scene: Scene) -> Said:
    heard: list[object] = []
    reader = consumer(scene, scene.topic)
    read(reader, 10)
    wanted = {TopicPartition(scene.topic, 0): OffsetAndMetadata(6, "", -1)}
    reader.commit_async(wanted, callback=lambda _, answer: heard.append(answer))

    def called() -> bool:
        polled(reader, 50)
        return bool(heard)

    wait_until("the callback", called)
    assert not isinstance(heard[0], Exception), heard
    reader.close()
    return None


# -- where a reader without an offset begins


def reset_earliest(scene: Scene, start: int) -> Said:
    reader = consumer(scene, scene.topic)
    expect_equal(read(reader, 5)[0].offset, start, "the first offset")
    reader.close()
    return None


def reset_latest(scene: Scene) -> Said:
    reader, writer = consumer(scene, scene.topic, auto_offset_reset="latest"), producer(scene)
    got: list[Any] = []

    def later() -> bool:
        writer.send(scene.topic, b"later", partition=0).get(PATIENCE_S)
        got.extend(polled(reader))
        return bool(got)

    wait_until("a record that is written later", later)
    expect_equal(values(got)[0], "later", "the first record")
    reader.close()
    writer.close()
    return None


def reset_none(scene: Scene) -> Said:
    reader = consumer(scene, scene.topic, auto_offset_reset="none")
    try:
        read(reader, 1)
    except (NoOffsetForPartitionError, OffsetOutOfRangeError) as error:
        return {"error": type(error).__name__}
    finally:
        reader.close()
    raise AssertionError("no error was raised")
