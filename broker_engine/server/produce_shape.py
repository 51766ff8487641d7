"""What Produce requests that begin with the same bytes have in common: version, acks, time-out and topic, and the
answer but for its offsets. Pure; for requests of one topic, which is what producers send in a row.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence

from broker_engine.records.header import HEADER_SIZE_BYTES, NO_TIMESTAMP
from broker_engine.server.local_partition import Appended, AppendedRun, LocalPartition
from broker_engine.wire.framing import encode_response, frame
from broker_engine.wire.messages.produce import (
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
    TopicProduceResponse,
)
from broker_engine.wire.primitives import read_uvarint

FLEXIBLE_SINCE = 9
PARTITIONS_MAX = 126
"""The length of the array, plus one, is one byte then."""
_TOPIC_IDS_SINCE = 13
_CLIENT = struct.Struct(">h")
_CLIENT_AT = 8
_INDEX = struct.Struct(">i")
_LENGTH = struct.Struct(">i")
_ANSWER = struct.Struct(">ihqqq")
"""Partition, error code, base offset, append time, log start: what differs between answers, and stands together."""
_SAMPLE = PartitionProduceResponse(index=0x01234567, base_offset=-2, log_append_time_ms=-3, log_start_offset=-4)
_SAMPLE_BYTES = _ANSWER.pack(0x01234567, 0, -2, -3, -4)
_ACKS_AND_TIMEOUT_BYTES = 6
_TOPIC_ID_BYTES = 16
_NO_TAGS_TWICE = b"\0\0"
_LENGTH_AND_CORRELATION_BYTES = 8

Written = tuple[LocalPartition, Appended]


class Place:
    """Where the requests go that begin with the same bytes."""

    __slots__ = (
        "acks",
        "answer_back",
        "answer_front",
        "answer_length",
        "is_transactional",
        "partition_back",
        "partitions",
        "timeout_ms",
        "topic",
        "version",
    )

    def __init__(self, request: ProduceRequest, version: int) -> None:
        self.version = version
        self.acks = request.acks
        self.is_transactional = request.transactional_id is not None
        self.timeout_ms = request.timeout_ms
        topic = request.topic_data[0]
        self.topic = TopicProduceData(name=topic.name, topic_id=topic.topic_id)
        self.partitions: dict[int, LocalPartition] = {}
        self._make_template()

    def _make_template(self) -> None:
        one, two = self.encoded(0, [_SAMPLE]), self.encoded(0, [_SAMPLE, _SAMPLE])
        at = one.index(_SAMPLE_BYTES)
        count_at, behind = at - 1, at + _ANSWER.size
        partition_end = at + len(two) - len(one)
        self.answer_length = one[: _LENGTH.size]
        self.answer_front = one[_LENGTH_AND_CORRELATION_BYTES:count_at]
        self.partition_back, self.answer_back = one[behind:partition_end], one[partition_end:]

    def encoded(self, correlation_id: int, partitions: list[PartitionProduceResponse]) -> bytes:
        topic = TopicProduceResponse(name=self.topic.name, topic_id=self.topic.topic_id, partition_responses=partitions)
        return b"".join(frame(encode_response(correlation_id, ProduceResponse(responses=[topic]), self.version)))

    def answer(self, correlation: memoryview, index: int, appended: Appended) -> bytes:
        """Framed, for one partition."""
        offsets = _ANSWER.pack(index, 0, appended.base_offset, appended.log_append_time_ms, appended.log_start_offset)
        return b"".join(
            (self.answer_length, correlation, self.answer_front, b"\2", offsets, self.partition_back, self.answer_back)
        )

    def answer_run(self, correlations: Sequence[memoryview], index: int, run: AppendedRun) -> bytes:
        """Framed, for requests of one partition whose batches stand one behind the other."""
        pack, base_offset = _ANSWER.pack, run.base_offset
        front, back = self.answer_front + b"\2", self.partition_back + self.answer_back
        pieces: list[bytes | memoryview] = []
        for correlation, record_count in zip(correlations, run.record_counts, strict=True):
            offsets = pack(index, 0, base_offset, NO_TIMESTAMP, run.log_start_offset)
            pieces += (self.answer_length, correlation, front, offsets, back)
            base_offset += record_count
        return b"".join(pieces)

    def answer_many(self, correlation: memoryview, written: Sequence[Written]) -> bytes:
        pack, back = _ANSWER.pack, self.partition_back
        pieces: list[bytes | memoryview] = [correlation, self.answer_front, bytes((len(written) + 1,))]
        for partition, appended in written:
            offsets = (appended.base_offset, appended.log_append_time_ms, appended.log_start_offset)
            pieces += (pack(partition.index, 0, *offsets), back)
        pieces.append(self.answer_back)
        body = b"".join(pieces)
        return _LENGTH.pack(len(body)) + body


def partitions_position(frame_view: memoryview, version: int) -> int | None:
    """Where the array of partitions begins in a request of one topic; None where it is not of the plain form."""
    position = _CLIENT_AT + _CLIENT.size + max(0, _CLIENT.unpack_from(frame_view, _CLIENT_AT)[0])
    if frame_view[position]:
        return None  # tags in the header
    length, position = read_uvarint(frame_view, position + 1)
    position += max(0, length - 1) + _ACKS_AND_TIMEOUT_BYTES + 1  # behind the transactional id, which may be null
    if version >= _TOPIC_IDS_SINCE:
        return position + _TOPIC_ID_BYTES
    length, position = read_uvarint(frame_view, position)
    return position + length - 1


def batches_of(frame_view: memoryview, position: int, count: int) -> dict[int, memoryview] | None:
    """The batch of each partition; None where something is unusual: tags, no batch, a partition named twice."""
    batches = {}
    for _ in range(count):
        if len(frame_view) < position + _INDEX.size + HEADER_SIZE_BYTES:
            return None
        (index,) = _INDEX.unpack_from(frame_view, position)
        length, start = read_uvarint(frame_view, position + _INDEX.size)
        position = start + length  # a length is one too large: so that is behind the tags, if there are none
        if length <= HEADER_SIZE_BYTES or position > len(frame_view) or frame_view[position - 1]:
            return None
        batches[index] = frame_view[start : position - 1]
    return batches if len(batches) == count and frame_view[position:] == _NO_TAGS_TWICE else None
