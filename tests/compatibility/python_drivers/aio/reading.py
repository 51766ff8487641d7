"""aiokafka: one reader: regex, pause, seek, commits, and where it begins without an offset."""

from __future__ import annotations

import asyncio
import re
import tempfile
from pathlib import Path
from typing import Any

from aiokafka import ConsumerRebalanceListener, TopicPartition
from aiokafka.errors import NoOffsetForPartitionError, OffsetOutOfRangeError
from aiokafka.structs import OffsetAndMetadata

from tests.compatibility.python_drivers.aio.clients import assigned, consumer, producer, read, values
from tests.compatibility.python_drivers.common import (
    Said,
    Scene,
    expect_equal,
    names_of,
)


async def regex(scene: Scene) -> Said:
    reader = consumer(scene)
    reader.subscribe(pattern=f"^{re.escape(scene.topic)}-[ab]$")
    async with reader:
        expect_equal(sorted({record.topic for record in await read(reader, 10)}), names_of(scene.topic), "topics read")
    return None


async def pause_resume(scene: Scene) -> Said:
    second = TopicPartition(scene.topic, 1)
    async with assigned(scene, 2) as reader:
        reader.pause(second)
        expect_equal({record.partition for record in await read(reader, 5)}, {0}, "partitions read while 1 was paused")
        assert not await reader.getmany(timeout_ms=300), "a paused partition was read"
        reader.resume(second)
        expect_equal({record.partition for record in await read(reader, 5)}, {1}, "partitions read then")
    return None


async def seek(scene: Scene) -> Said:
    partition = TopicPartition(scene.topic, 0)
    async with assigned(scene) as reader:
        reader.seek(partition, 7)
        expect_equal([record.offset for record in await read(reader, 3)], [7, 8, 9], "after seek(7)")
        await reader.seek_to_beginning(partition)
        expect_equal((await read(reader, 1))[0].offset, 0, "after seek_to_beginning")
        await reader.seek_to_end(partition)
        expect_equal(await reader.position(partition), 10, "after seek_to_end")
    return None


async def outside_store(scene: Scene) -> Said:
    with tempfile.TemporaryDirectory() as folder:
        store = Path(folder) / "offset"
        async with consumer(scene, scene.topic) as first:
            for record in await read(first, 5):
                store.write_text(str(record.offset + 1))
        stored = int(store.read_text())
    again = consumer(scene)

    class FromStore(ConsumerRebalanceListener):  # type: ignore[misc]
        def on_partitions_revoked(self, revoked: Any) -> None: ...

        def on_partitions_assigned(self, assigned: Any) -> None:
            for each in assigned:
                again.seek(each, stored)

    again.subscribe([scene.topic], listener=FromStore())
    async with again:
        expect_equal((await read(again, 5))[0].offset, stored, "the first offset after the restart")
    return None


# -- commits


async def commit_auto(scene: Scene) -> Said:
    async with consumer(scene, scene.topic, enable_auto_commit=True, auto_commit_interval_ms=100) as reader:
        await read(reader, 10)
    return None


async def commit_sync(scene: Scene) -> Said:
    async with consumer(scene, scene.topic) as reader:
        await read(reader, 10)
        await reader.commit()
        await reader.commit({TopicPartition(scene.topic, 0): OffsetAndMetadata(4, "note")})
    return None


async def commit_async(scene: Scene) -> Said:
    """It has one commit, a coroutine; asynchronous is a task with a callback."""
    heard: list[object] = []
    async with consumer(scene, scene.topic) as reader:
        await read(reader, 10)
        task = asyncio.ensure_future(reader.commit({TopicPartition(scene.topic, 0): 6}))
        task.add_done_callback(lambda done: heard.append(done.exception()))
        await asyncio.wait([task])
    expect_equal(heard, [None], "what the callback heard")
    return None


# -- where a reader without an offset begins


async def reset_earliest(scene: Scene, start: int) -> Said:
    async with consumer(scene, scene.topic) as reader:
        expect_equal((await read(reader, 5))[0].offset, start, "the first offset")
    return None


async def reset_latest(scene: Scene) -> Said:
    async with consumer(scene, scene.topic, auto_offset_reset="latest") as reader, producer(scene) as writer:
        got: list[Any] = []
        while not got:
            await writer.send_and_wait(scene.topic, b"later", partition=0)
            for records in (await reader.getmany(timeout_ms=200)).values():
                got += records
        expect_equal(values(got)[0], "later", "the first record")
    return None


async def reset_none(scene: Scene) -> Said:
    async with consumer(scene, scene.topic, auto_offset_reset="none") as reader:
        try:
            await read(reader, 1)
        except (NoOffsetForPartitionError, OffsetOutOfRangeError) as error:
            return {"error": type(error).__name__}
    raise AssertionError("no error was raised")
