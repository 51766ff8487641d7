"""aiokafka: acks, ways to send, codecs, headers, idempotence, transactions."""

from __future__ import annotations

from aiokafka import TopicPartition
from aiokafka.errors import KafkaError

from tests.compatibility.python_drivers.aio.clients import assigned, consumer, producer, read, send, values
from tests.compatibility.python_drivers.common import (
    COMPRESSIBLE,
    HEADERS,
    Said,
    Scene,
    expect_equal,
)


async def acks(scene: Scene, setting: int | str) -> Said:
    offsets = []
    async with producer(scene, acks=setting) as writer:
        for i in range(10):
            stored = await writer.send_and_wait(scene.topic, f"value-{i}".encode(), partition=0)
            offsets.append(stored.offset if stored else -1)
    return {"offsets": offsets} if setting != 0 else None


async def send_forget(scene: Scene) -> Said:
    async with producer(scene) as writer:
        await send(writer, scene.topic, "value", 10)
    return None


async def send_callback(scene: Scene) -> Said:
    heard: list[object] = []
    async with producer(scene) as writer:
        for i in range(10):
            future = await writer.send(scene.topic, f"value-{i}".encode(), partition=0)
            future.add_done_callback(lambda done: heard.append(done.exception()))
        await writer.flush()
    expect_equal(heard, [None] * 10, "what the callbacks heard")
    return None


async def codec(scene: Scene, name: str | None) -> Said:
    async with producer(scene, compression_type=name, linger_ms=50) as writer:
        await send(writer, scene.topic, COMPRESSIBLE, 50)
    async with assigned(scene) as reader:
        expect_equal(values(await read(reader, 50)), [f"{COMPRESSIBLE}-{i}" for i in range(50)], "what was read")
    return None


async def headers(scene: Scene) -> Said:
    async with producer(scene) as writer:
        await writer.send_and_wait(scene.topic, b"value-0", partition=0, headers=HEADERS)
    async with assigned(scene) as reader:
        (record,) = await read(reader, 1)
    return {"headers": [f"{key}={value.decode()}" for key, value in record.headers]}


async def idempotent(scene: Scene) -> Said:
    async with producer(scene, enable_idempotence=True) as writer:
        for i in range(20):
            await writer.send(scene.topic, f"value-{i}".encode(), partition=0)
            if i == 9:
                await writer.flush()
    return None


# -- transactions


async def txn_commit(scene: Scene) -> Said:
    async with producer(scene, transactional_id=scene.topic) as writer, writer.transaction():
        for partition in range(2):
            await send(writer, scene.topic, "kept", 5, partition)
    return None


async def txn_abort(scene: Scene) -> Said:
    async with producer(scene, transactional_id=scene.topic) as writer:
        await writer.begin_transaction()
        await send(writer, scene.topic, "dropped", 5)
        await writer.abort_transaction()
        async with writer.transaction():
            await send(writer, scene.topic, "kept", 5)
    return None


async def txn_fencing(scene: Scene) -> Said:
    old = producer(scene, transactional_id=scene.topic)
    await old.start()
    await old.begin_transaction()
    await send(old, scene.topic, "dropped", 5)
    async with producer(scene, transactional_id=scene.topic) as current, current.transaction():
        await send(current, scene.topic, "kept", 5)
    try:
        await old.commit_transaction()
    except KafkaError as error:
        return {"error": type(error).__name__}
    finally:
        await old.stop()
    raise AssertionError("the old producer could commit")


async def txn_offsets(scene: Scene) -> Said:
    async with (
        consumer(scene, scene.topic, isolation_level="read_committed") as reader,
        producer(scene, transactional_id=scene.topic) as writer,
        writer.transaction(),
    ):
        for record in await read(reader, 10):
            await writer.send(f"{scene.topic}-out", b"seen-" + record.value, partition=0)
        offset = await reader.position(TopicPartition(scene.topic, 0))
        await writer.send_offsets_to_transaction({TopicPartition(scene.topic, 0): offset}, scene.topic)
    return None


async def read_committed(scene: Scene) -> Said:
    for level, count in (("read_committed", 10), ("read_uncommitted", 15)):
        async with assigned(scene, isolation_level=level) as reader:
            got = values(await read(reader, count))
        assert level == "read_uncommitted" or all(value.startswith("kept") for value in got), got
    return None
