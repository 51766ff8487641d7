"""kafka-python: acks, ways to send, codecs, headers, idempotence, transactions."""

from __future__ import annotations

from kafka import (
    KafkaProducer,
    OffsetAndMetadata,
    TopicPartition,
)
from kafka.errors import KafkaError

from tests.compatibility.python_drivers.common import (
    COMPRESSIBLE,
    HEADERS,
    PATIENCE_S,
    Said,
    Scene,
    expect_equal,
)
from tests.compatibility.python_drivers.kpython.clients import assigned, consumer, producer, read, send, values


def acks(scene: Scene, setting: int | str) -> Said:
    writer = producer(scene, acks=setting, enable_idempotence=False)
    offsets = [writer.send(scene.topic, f"value-{i}".encode(), partition=0).get(PATIENCE_S).offset for i in range(10)]
    writer.close()
    return {"offsets": offsets} if setting != 0 else None


def send_forget(scene: Scene) -> Said:
    writer = producer(scene)
    send(writer, scene.topic, "value", 10)
    writer.close()
    return None


def send_callback(scene: Scene) -> Said:
    heard: list[int] = []
    writer = producer(scene)
    for i in range(10):
        future = writer.send(scene.topic, f"value-{i}".encode(), partition=0)
        future.add_callback(lambda stored: heard.append(stored.offset))
    writer.flush(PATIENCE_S)
    writer.close()
    expect_equal(sorted(heard), list(range(10)), "what the callbacks heard")
    return None


def codec(scene: Scene, name: str | None) -> Said:
    writer = producer(scene, compression_type=name, linger_ms=50)
    send(writer, scene.topic, COMPRESSIBLE, 50)
    writer.close()
    reader = assigned(scene)
    expect_equal(values(read(reader, 50)), [f"{COMPRESSIBLE}-{i}" for i in range(50)], "what was read")
    reader.close()
    return None


def headers(scene: Scene) -> Said:
    writer = producer(scene)
    writer.send(scene.topic, b"value-0", partition=0, headers=HEADERS).get(PATIENCE_S)
    writer.close()
    reader = assigned(scene)
    (record,) = read(reader, 1)
    reader.close()
    return {"headers": [f"{key}={value.decode()}" for key, value in record.headers]}


def idempotent(scene: Scene) -> Said:
    writer = producer(scene, enable_idempotence=True)
    for i in range(20):
        writer.send(scene.topic, f"value-{i}".encode(), partition=0)
        if i == 9:
            writer.flush(PATIENCE_S)
    writer.close()
    return None


# -- transactions


def begun(scene: Scene) -> KafkaProducer:
    writer = producer(scene, transactional_id=scene.topic)
    writer.init_transactions()
    writer.begin_transaction()
    return writer


def txn_commit(scene: Scene) -> Said:
    writer = begun(scene)
    for partition in range(2):
        send(writer, scene.topic, "kept", 5, partition)
    writer.commit_transaction()
    writer.close()
    return None


def txn_abort(scene: Scene) -> Said:
    writer = begun(scene)
    send(writer, scene.topic, "dropped", 5)
    writer.abort_transaction()
    writer.begin_transaction()
    send(writer, scene.topic, "kept", 5)
    writer.commit_transaction()
    writer.close()
    return None


def txn_fencing(scene: Scene) -> Said:
    old = begun(scene)
    send(old, scene.topic, "dropped", 5)
    current = begun(scene)
    send(current, scene.topic, "kept", 5)
    current.commit_transaction()
    current.close()
    try:
        old.commit_transaction()
    except KafkaError as error:
        return {"error": type(error).__name__}
    raise AssertionError("the old producer could commit")


def txn_offsets(scene: Scene) -> Said:
    reader = consumer(scene, scene.topic, isolation_level="read_committed")
    writer = begun(scene)
    for record in read(reader, 10):
        writer.send(f"{scene.topic}-out", b"seen-" + record.value, partition=0)
    partition = TopicPartition(scene.topic, 0)
    offsets = {partition: OffsetAndMetadata(reader.position(partition), "", -1)}
    writer.send_offsets_to_transaction(offsets, reader.group_metadata())
    writer.commit_transaction()
    writer.close()
    reader.close()
    return None


def read_committed(scene: Scene) -> Said:
    for level, count in (("read_committed", 10), ("read_uncommitted", 15)):
        reader = assigned(scene, isolation_level=level)
        got = values(read(reader, count))
        reader.close()
        assert level == "read_uncommitted" or all(value.startswith("kept") for value in got), got
    return None
