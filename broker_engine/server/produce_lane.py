"""The short way of a Produce request that differs from an earlier one of its connection only in its batch.

Producers send thousands of those in a row. The bytes before the batch say version, acks, time-out and topic, and
nothing that they led to changes before the metadata or the caller does: so it is kept by those bytes, the batch goes to
its partition at once, and the answer is a template with the offsets filled in. Whatever is unusual (more than one
partition, a tag, a transaction, any refusal) takes the ordinary way, before anything was done about it.
"""

from __future__ import annotations

import asyncio
import logging
import struct
from typing import TYPE_CHECKING

from broker_engine.errors import BrokerError
from broker_engine.handlers.api import Call
from broker_engine.handlers.topics import find_topic, led_partition
from broker_engine.names import is_internal_topic
from broker_engine.records.header import HEADER_SIZE_BYTES, TRANSACTIONAL_BIT
from broker_engine.server.acks import AckWait
from broker_engine.server.local_partition import Appended, LocalPartition
from broker_engine.server.outcome import HANG_UP, NO_ANSWER, Later, Outcome
from broker_engine.telemetry.usage import TenantUsage
from broker_engine.wire.framing import encode_response, frame
from broker_engine.wire.messages.produce import (
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
    TopicProduceResponse,
)
from broker_engine.wire.primitives import read_uvarint

if TYPE_CHECKING:
    from broker_engine.server.session import Session

log = logging.getLogger(__name__)

PRODUCE_KEY = ProduceRequest.API.key
_FLEXIBLE_SINCE = 9
_TOPIC_IDS_SINCE = 13
_ACKS_ALL, _ACKS_NONE = -1, 0
_PLACES_MAX = 16
_LIKENESS_BYTES_MAX = 512
_LIKENESS_START = 8  # behind key, version and correlation id
_KEY_AND_VERSION = struct.Struct(">hh")
_CORRELATION = struct.Struct(">i")
_CLIENT = struct.Struct(">h")
_CLIENT_AT = 8
_INDEX = struct.Struct(">i")
_ANSWER = struct.Struct(">ihqqq")
"""Partition, error code, base offset, append time, log start: what differs between answers, and stands together."""
_SAMPLE = PartitionProduceResponse(index=0x01234567, base_offset=-2, log_append_time_ms=-3, log_start_offset=-4)
_SAMPLE_BYTES = _ANSWER.pack(0x01234567, 0, -2, -3, -4)
_ACKS_AND_TIMEOUT_BYTES = 6
_TOPIC_ID_BYTES = 16
_ONE_ELEMENT = 2
"""Of a compact array: its length plus one."""
_NO_TAGS_THREE_TIMES = b"\0\0\0"
_ATTRIBUTES_LOW_BYTE = 22


class _Place:
    """Where the requests go that begin with the same bytes."""

    __slots__ = ("acks", "answer_back", "answer_front", "answer_length", "partitions", "timeout_s", "topic", "version")

    def __init__(self, request: ProduceRequest, version: int) -> None:
        self.version = version
        self.acks = request.acks
        self.timeout_s = max(0, request.timeout_ms) / 1000
        topic = request.topic_data[0]
        self.topic = TopicProduceData(name=topic.name, topic_id=topic.topic_id)
        self.partitions: dict[int, LocalPartition] = {}
        answer = self.encoded(0, _SAMPLE)
        at = answer.index(_SAMPLE_BYTES)
        self.answer_length, self.answer_front = answer[:4], answer[8:at]
        self.answer_back = answer[at + _ANSWER.size :]

    def encoded(self, correlation_id: int, partition: PartitionProduceResponse) -> bytes:
        topic = TopicProduceResponse(
            name=self.topic.name, topic_id=self.topic.topic_id, partition_responses=[partition]
        )
        parts = frame(encode_response(correlation_id, ProduceResponse(responses=[topic]), self.version))
        return b"".join(parts)

    def answer(self, correlation: memoryview, index: int, appended: Appended) -> bytes:
        offsets = _ANSWER.pack(index, 0, appended.base_offset, appended.log_append_time_ms, appended.log_start_offset)
        return b"".join((self.answer_length, correlation, self.answer_front, offsets, self.answer_back))


class ProduceLane:
    def __init__(self, session: Session) -> None:
        self._session = session
        self._broker = session.broker
        self._sasl = session.sasl
        self._likeness_end = 0
        """Where the partition's index stands, in requests like the one that was learned last."""
        self._places: dict[bytes, _Place] = {}
        self._image: object = None
        self._principal: object = None
        self._usage = TenantUsage()

    def on_frame(self, frame_view: memoryview) -> Outcome | Later | None:
        """None: nothing was done, the request takes the ordinary way."""
        end = self._likeness_end
        if len(frame_view) < end + HEADER_SIZE_BYTES:
            return None
        place = self._places.get(bytes(frame_view[_LIKENESS_START:end]))
        if place is None or not self._still_holds():
            return None
        key, version = _KEY_AND_VERSION.unpack_from(frame_view)
        (index,) = _INDEX.unpack_from(frame_view, end)
        partition = place.partitions.get(index)
        if key != PRODUCE_KEY or version != place.version or partition is None or partition.is_retired:
            return None
        length, start = read_uvarint(frame_view, end + _INDEX.size)
        end = start + length - 1
        if length <= HEADER_SIZE_BYTES or frame_view[end:] != _NO_TAGS_THREE_TIMES:
            return None
        if frame_view[start + _ATTRIBUTES_LOW_BYTE] & TRANSACTIONAL_BIT:
            return None
        return self._produce(frame_view, place, partition, frame_view[start:end])

    def _still_holds(self) -> bool:
        broker = self._broker
        return (
            broker.image is self._image
            and self._sasl.principal is self._principal
            and not broker.disk_floor.is_low
            and not broker.is_self_fenced
            and self._sasl.may_go_on(broker.clock.monotonic_ms())
        )

    def _produce(
        self, frame_view: memoryview, place: _Place, partition: LocalPartition, records: memoryview
    ) -> Outcome | Later | None:
        try:
            appended = partition.append(records, produce_version=place.version, acks=place.acks)
        except BrokerError:
            return None  # nothing was appended: the ordinary way finds the same, and says it
        except Exception:
            log.exception("Produce v%d from %s failed", place.version, self._session.peer)
            return HANG_UP
        usage = self._usage
        usage.requests += 1
        usage.bytes_in += len(frame_view) + _INDEX.size
        self._broker.usage.of(partition.name.tenant).records_in += appended.record_count
        if place.acks == _ACKS_NONE:
            return NO_ANSWER
        answer = place.answer(frame_view[4:8], partition.index, appended)
        usage.bytes_out += len(answer)
        if place.acks == _ACKS_ALL and partition.high_watermark < appended.end_offset:
            return self._later(place, partition, appended, answer)
        return Outcome((answer,))

    def _later(self, place: _Place, partition: LocalPartition, appended: Appended, answer: bytes) -> Later:
        wait = AckWait(asyncio.get_running_loop())
        response = PartitionProduceResponse(
            index=partition.index,
            base_offset=appended.base_offset,
            log_append_time_ms=appended.log_append_time_ms,
            log_start_offset=appended.log_start_offset,
        )
        partition.when_acked(appended.end_offset, wait.expect(response))
        wait.start_timer(place.timeout_s)
        return Later(_when_acked(wait, response, place, answer), is_next_allowed=True)

    # --- learning

    def learn(self, frame_view: memoryview, version: int, request: ProduceRequest) -> None:
        """The ordinary way was taken by a caller who may: the next one like it need not."""
        if version < _FLEXIBLE_SINCE or len(request.topic_data) != 1 or len(request.topic_data[0].partition_data) != 1:
            return
        likeness_end = _index_position(frame_view, version)
        if likeness_end is None or likeness_end > _LIKENESS_BYTES_MAX:
            return
        self._keep_up()
        index = request.topic_data[0].partition_data[0].index
        partition = self._find(request, version, index)
        if partition is None:
            return
        likeness = bytes(frame_view[_LIKENESS_START:likeness_end])
        place = self._places.get(likeness)
        if place is None or place.version != version:
            if len(self._places) >= _PLACES_MAX:
                self._places.clear()
            place = self._places[likeness] = _Place(request, version)
        place.partitions[index] = partition
        self._likeness_end = likeness_end

    def _keep_up(self) -> None:
        """With another image, or another caller, nothing that was learned holds."""
        session = self._session
        if self._image is not self._broker.image or self._principal is not self._sasl.principal:
            self._places.clear()
            self._image, self._principal = self._broker.image, self._sasl.principal
            self._usage = self._broker.usage.of(session.caller.tenant)

    def _find(self, request: ProduceRequest, version: int, index: int) -> LocalPartition | None:
        session = self._session
        if not self._sasl.is_authenticated or session.caller.is_bare_gateway or request.transactional_id is not None:
            return None
        call = Call(self._broker, session, session.caller, version, None)
        topic = request.topic_data[0]
        try:
            image = find_topic(call, topic.name, topic.topic_id)
            return None if is_internal_topic(image.name) else led_partition(call, image, index)
        except BrokerError:
            return None


async def _when_acked(wait: AckWait, response: PartitionProduceResponse, place: _Place, answer: bytes) -> Outcome:
    await wait.wait()
    if response.error_code:
        answer = place.encoded(_CORRELATION.unpack_from(answer, 4)[0], response)
    return Outcome((answer,))


def _index_position(frame_view: memoryview, version: int) -> int | None:
    """Where the partition's index stands in a request of one partition; None where it is not of the plain form."""
    position = _CLIENT_AT + _CLIENT.size + max(0, _CLIENT.unpack_from(frame_view, _CLIENT_AT)[0])
    if frame_view[position] or frame_view[position + 1]:
        return None  # tags in the header, or a transactional id
    position += 2 + _ACKS_AND_TIMEOUT_BYTES + 1
    if version >= _TOPIC_IDS_SINCE:
        position += _TOPIC_ID_BYTES
    else:
        length, position = read_uvarint(frame_view, position)
        position += length - 1
    return position + 1 if frame_view[position] == _ONE_ELEMENT else None
