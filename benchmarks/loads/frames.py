"""Produce requests made before the clock starts, so that the client costs little while it runs."""

from __future__ import annotations

import random
import struct
import time

from crc32c import crc32c

from benchmarks.loads.rpc import request_frame
from broker_engine.records.builder import NewRecord, build_batch
from broker_engine.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData

PRODUCE_VERSION = 9
"""The first flexible one, and the newest but the ones with topic ids that both brokers speak alike."""
TIMEOUT_MS = 120_000
_CRC_AT, _CRC_START, _SEQUENCE_AT = 17, 21, 53
_SEQUENCE = struct.Struct(">i")
_CRC = struct.Struct(">I")


def payload(size_bytes: int) -> bytes:
    """Random capital letters, as Kafka's own perf test sends them: they compress, but not to nothing."""
    return bytes(random.Random(size_bytes).choices(range(65, 91), k=size_bytes))


def batch_of(batch_bytes: int, record_bytes: int = 1_000) -> bytes:
    """One batch of about `batch_bytes`: many records of `record_bytes`, or one smaller record."""
    size_bytes = min(record_bytes, batch_bytes)
    now_ms = int(time.time() * 1_000)
    record = NewRecord(now_ms, None, payload(size_bytes))
    return build_batch([record] * max(1, batch_bytes // size_bytes))


def keyed_batch(*, record_count: int, record_bytes: int) -> bytes:
    """Each record has a key of its own, the same ones in every batch."""
    now_ms = int(time.time() * 1_000)
    return build_batch([NewRecord(now_ms, b"key-%d" % number, payload(record_bytes)) for number in range(record_count)])


def produce_frame(topic: str, batches: dict[int, bytes], acks: int) -> bytes:
    partitions = [PartitionProduceData(index=index, records=batch) for index, batch in batches.items()]
    data = [TopicProduceData(name=topic, partition_data=partitions)]
    return request_frame(ProduceRequest(acks=acks, timeout_ms=TIMEOUT_MS, topic_data=data), PRODUCE_VERSION)


def idempotent_frames(
    topic: str, partition: int, count: int, record_bytes: int, producer: tuple[int, int]
) -> list[memoryview]:
    """`count` requests of one record, sequences 0, 1, 2...: the same frame with two fields changed and a new CRC."""
    record = NewRecord(int(time.time() * 1_000), None, payload(record_bytes))
    batch = build_batch([record], producer_id=producer[0], producer_epoch=producer[1], base_sequence=0)
    template = produce_frame(topic, {partition: batch}, acks=-1)
    start, size_bytes = template.index(batch), len(template)
    stream = bytearray(template * count)
    view = memoryview(stream)
    for sequence in range(count):
        base = sequence * size_bytes + start
        _SEQUENCE.pack_into(stream, base + _SEQUENCE_AT, sequence)
        _CRC.pack_into(stream, base + _CRC_AT, crc32c(view[base + _CRC_START : base + len(batch)]))
    return [view[i * size_bytes : (i + 1) * size_bytes] for i in range(count)]
