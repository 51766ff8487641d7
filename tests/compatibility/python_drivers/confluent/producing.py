"""confluent-kafka (librdkafka): acks, ways to send, codecs, headers, idempotence, transactions."""

from __future__ import annotations

from confluent_kafka import (
    KafkaException,
    Producer,
)

from tests.compatibility.python_drivers.common import (
    COMPRESSIBLE,
    HEADERS,
    PATIENCE_S,
    Said,
    Scene,
    expect_equal,
)
from tests.compatibility.python_drivers.confluent.clients import (
    assigned,
    producer,
    read,
    send,
    subscribed,
    values,
)


def acks(scene: Scene, setting: str) -> Said:
    offsets: list[int | None] = []
    writer = producer(scene, acks=setting, enable_idempotence=False)
    for i in range(10):
        writer.produce(scene.topic, f"value-{i}", partition=0, on_delivery=lambda _, m: offsets.append(m.offset()))
        writer.flush(PATIENCE_S)
    return {"offsets": offsets} if setting != "0" else None


def send_forget(scene: Scene) -> Said:
    send(producer(scene), scene.topic, "value", 10)
    return None


def send_callback(scene: Scene) -> Said:
    heard: list[object] = []
    writer = producer(scene)
    for i in range(10):
        writer.produce(scene.topic, f"value-{i}", partition=0, on_delivery=lambda error, _: heard.append(error))
    writer.flush(PATIENCE_S)
    expect_equal(heard, [None] * 10, "what the callbacks heard")
    return None


def codec(scene: Scene, name: str) -> Said:
    send(producer(scene, compression_type=name, linger_ms=50), scene.topic, COMPRESSIBLE, 50)
    reader = assigned(scene)
    expect_equal(values(read(reader, 50)), [f"{COMPRESSIBLE}-{i}" for i in range(50)], "what was read")
    reader.close()
    return None


def headers(scene: Scene) -> Said:
    writer = producer(scene)
    writer.produce(scene.topic, "value-0", partition=0, headers=HEADERS)
    writer.flush(PATIENCE_S)
    reader = assigned(scene)
    (message,) = read(reader, 1)
    reader.close()
    return {"headers": [f"{key}={(value or b'').decode()}" for key, value in message.headers() or []]}


def idempotent(scene: Scene) -> Said:
    writer = producer(scene, enable_idempotence=True)
    for i in range(20):
        writer.produce(scene.topic, f"value-{i}", partition=0)
        if i == 9:
            writer.flush(PATIENCE_S)
    writer.flush(PATIENCE_S)
    return None


# -- transactions


def begun(scene: Scene) -> Producer:
    writer = producer(scene, transactional_id=scene.topic)
    writer.init_transactions(PATIENCE_S)
    writer.begin_transaction()
    return writer


def txn_commit(scene: Scene) -> Said:
    writer = begun(scene)
    for partition in range(2):
        send(writer, scene.topic, "kept", 5, partition)
    writer.commit_transaction(PATIENCE_S)
    return None


def txn_abort(scene: Scene) -> Said:
    writer = begun(scene)
    send(writer, scene.topic, "dropped", 5)
    writer.abort_transaction(PATIENCE_S)
    writer.begin_transaction()
    send(writer, scene.topic, "kept", 5)
    writer.commit_transaction(PATIENCE_S)
    return None


def txn_fencing(scene: Scene) -> Said:
    old = begun(scene)
    send(old, scene.topic, "dropped", 5)
    current = begun(scene)
    send(current, scene.topic, "kept", 5)
    current.commit_transaction(PATIENCE_S)
    try:
        old.commit_transaction(PATIENCE_S)
    except KafkaException as error:
        return {"error": error.args[0].name()}
    raise AssertionError("the old producer could commit")


def txn_offsets(scene: Scene) -> Said:
    reader = subscribed(scene, isolation_level="read_committed")
    writer = begun(scene)
    for message in read(reader, 10):
        writer.produce(f"{scene.topic}-out", b"seen-" + (message.value() or b""), partition=0)
    writer.send_offsets_to_transaction(
        reader.position(reader.assignment()), reader.consumer_group_metadata(), PATIENCE_S
    )
    writer.commit_transaction(PATIENCE_S)
    reader.close()
    return None


def read_committed(scene: Scene) -> Said:
    for level, count in (("read_committed", 10), ("read_uncommitted", 15)):
        reader = assigned(scene, isolation_level=level)
        got = values(read(reader, count))
        reader.close()
        assert level == "read_uncommitted" or all(value.startswith("kept") for value in got), got
    return None
