"""The short way of a Produce request that differs from an earlier one of its connection only in its batches.

Producers send thousands of those in a row. The bytes before the batches say version, acks, time-out and topic, and
nothing that they led to changes before the metadata or the caller does: so it is kept by those bytes, the batches go to
their partitions at once, and the answer is a template with the offsets filled in. Whatever is unusual (several topics,
a tag, a transaction that is not open here yet, any refusal) takes the ordinary way, before anything was done about it;
a refusal behind batches that were taken takes it from there on.
"""

from __future__ import annotations

import logging
import struct
from collections.abc import Awaitable, Iterator, Sequence
from typing import TYPE_CHECKING

from broker_engine.errors import BrokerError
from broker_engine.handlers import produce
from broker_engine.handlers.api import Call
from broker_engine.handlers.topics import find_topic, led_partition
from broker_engine.names import is_internal_topic
from broker_engine.records.header import ATTRIBUTES_LOW_BYTE, HEADER_SIZE_BYTES, TRANSACTIONAL_BIT
from broker_engine.server.local_partition import LocalPartition
from broker_engine.server.outcome import HANG_UP, NO_ANSWER, Later, Outcome
from broker_engine.server.produce_acks import acked, acked_with_rest, run_acked
from broker_engine.server.produce_shape import (
    FLEXIBLE_SINCE,
    PARTITIONS_MAX,
    Place,
    Written,
    batches_of,
    partitions_position,
)
from broker_engine.telemetry.usage import TenantUsage
from broker_engine.wire.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from broker_engine.wire.primitives import read_uvarint

if TYPE_CHECKING:
    from broker_engine.server.session import Session

log = logging.getLogger(__name__)

PRODUCE_KEY = ProduceRequest.API.key
_ACKS_ALL, _ACKS_NONE = -1, 0
_PLACES_MAX = 16
_LIKENESS_BYTES_MAX = 512
_LIKENESS_START = 8  # behind key, version and correlation id
_KEY_AND_VERSION = struct.Struct(">hh")
_CORRELATION = struct.Struct(">i")
_INDEX = struct.Struct(">i")
_ONE_ELEMENT = 2
"""Of a compact array: its length plus one."""
_NO_TAGS_THREE_TIMES = b"\0\0\0"


class ProduceLane:
    def __init__(self, session: Session) -> None:
        self._session = session
        self._broker = session.broker
        self._sasl = session.sasl
        self._likeness_end = 0
        """Where the partitions begin, in requests like the one that was learned last."""
        self._places: dict[bytes, Place] = {}
        self._image: object = None
        self._principal: object = None
        self._usage = TenantUsage()

    def on_frame(self, frame_view: memoryview, following: Iterator[memoryview]) -> tuple[Outcome | Later, int] | None:
        """What becomes of it, and how many of those behind it went with it. None: nothing was done, the request takes
        the ordinary way.
        """
        place = self._place_of(frame_view)
        if place is None or not self._still_holds():
            return None
        position = self._likeness_end
        if frame_view[position] != _ONE_ELEMENT:
            outcome = self._on_many(frame_view, place, position)
            return None if outcome is None else (outcome, 0)
        only = self._only_batch(frame_view, place, position + 1)
        if only is None:
            return None
        partition, start, end = only
        if frame_view[start + ATTRIBUTES_LOW_BYTE] & TRANSACTIONAL_BIT and not place.is_transactional:
            return None
        frames, batches = [frame_view], [frame_view[start:end]]
        if not place.is_transactional:
            self._add_alike(frames, batches, following, place, only)
        run = self._produce_run(frames, place, partition, batches) if len(batches) > 1 else None
        if run is not None:
            return run
        outcome = self._produce(frame_view, place, partition, batches[0])
        return None if outcome is None else (outcome, 0)

    def _place_of(self, frame_view: memoryview) -> Place | None:
        end = self._likeness_end
        if len(frame_view) < end + HEADER_SIZE_BYTES:
            return None
        place = self._places.get(bytes(frame_view[_LIKENESS_START:end]))
        is_like = place is not None and _KEY_AND_VERSION.unpack_from(frame_view) == (PRODUCE_KEY, place.version)
        return place if is_like else None

    def _only_batch(
        self, frame_view: memoryview, place: Place, position: int
    ) -> tuple[LocalPartition, int, int] | None:
        """Where it goes, where it begins and where it ends."""
        (index,) = _INDEX.unpack_from(frame_view, position)
        partition = self._partition(place, index)
        if partition is None:
            return None
        length, start = read_uvarint(frame_view, position + _INDEX.size)
        end = start + length - 1
        if length <= HEADER_SIZE_BYTES or frame_view[end:] != _NO_TAGS_THREE_TIMES:
            return None
        return partition, start, end

    def _partition(self, place: Place, index: int) -> LocalPartition | None:
        partition = place.partitions.get(index)
        if partition is None:
            return self._learn_partition(place, index)
        return None if partition.is_retired else partition

    def _still_holds(self) -> bool:
        broker = self._broker
        return (
            broker.image is self._image
            and self._sasl.principal is self._principal
            and not broker.disk_floor.is_low
            and not broker.is_self_fenced
            and self._sasl.may_go_on(broker.clock.monotonic_ms())
        )

    # --- one batch

    def _produce(
        self, frame_view: memoryview, place: Place, partition: LocalPartition, records: memoryview
    ) -> Outcome | Later | None:
        try:
            appended = partition.append(records, produce_version=place.version, acks=place.acks)
        except BrokerError:
            return None  # nothing was appended: the ordinary way finds the same, and says it
        except Exception:
            log.exception("Produce v%d from %s failed", place.version, self._session.peer)
            return HANG_UP
        self._count_in(frame_view)
        self._broker.usage.of(partition.name.tenant).records_in += appended.record_count
        if place.acks == _ACKS_NONE:
            return NO_ANSWER
        answer = place.answer(frame_view[4:8], partition.index, appended)
        self._usage.bytes_out += len(answer)
        if place.acks == _ACKS_ALL and partition.high_watermark < appended.end_offset:
            return self._later(place, [(partition, appended)], answer)
        return Outcome((answer,))

    def _count_in(self, *frames: memoryview) -> None:
        self._usage.requests += len(frames)
        self._usage.bytes_in += sum(map(len, frames)) + len(frames) * _INDEX.size

    # --- one batch each, of several requests

    def _add_alike(
        self,
        frames: list[memoryview],
        batches: list[memoryview],
        following: Iterator[memoryview],
        place: Place,
        only: tuple[LocalPartition, int, int],
    ) -> None:
        """Those that were read together with the first, and have a batch for the same partition as it has."""
        partition, start, end = only
        first = frames[0]
        size_bytes, begin, front = len(first), first[:4], bytes(first[_LIKENESS_START:start])
        index_start, index_end = self._likeness_end + 1, self._likeness_end + 1 + _INDEX.size
        index = bytes(first[index_start:index_end])
        for frame_view in following:
            if frame_view[index_start:index_end] != index:
                return  # another partition: who writes to several in turn is not to pay for looking ahead
            if len(frame_view) == size_bytes and frame_view[_LIKENESS_START:start] == front:
                if frame_view[:4] != begin or frame_view[end:] != _NO_TAGS_THREE_TIMES:
                    return
                batches.append(frame_view[start:end])
            else:
                batch = self._batch_for(partition, frame_view, place)
                if batch is None:
                    return
                batches.append(batch)
            frames.append(frame_view)

    def _batch_for(self, partition: LocalPartition, frame_view: memoryview, place: Place) -> memoryview | None:
        position = self._likeness_end
        if self._place_of(frame_view) is not place or frame_view[position] != _ONE_ELEMENT:
            return None
        only = self._only_batch(frame_view, place, position + 1)
        return frame_view[only[1] : only[2]] if only is not None and only[0] is partition else None

    def _produce_run(
        self, frames: Sequence[memoryview], place: Place, partition: LocalPartition, batches: list[memoryview]
    ) -> tuple[Outcome | Later, int] | None:
        """Several requests take one write and one answer. None: nothing was done, the first is to go by itself."""
        try:
            run = partition.append_run(batches, produce_version=place.version, acks=place.acks)
        except BrokerError:
            return None  # nothing was appended: the ordinary way finds the same, and says it
        except Exception:
            log.exception("Produce v%d from %s failed", place.version, self._session.peer)
            return HANG_UP, 0
        if run is None:
            return None
        count = len(run.record_counts)
        frames = frames[:count]
        self._count_in(*frames)
        self._broker.usage.of(partition.name.tenant).records_in += run.end_offset - run.base_offset
        if place.acks == _ACKS_NONE:
            return NO_ANSWER, count - 1
        correlations = [frame_view[4:8] for frame_view in frames]
        answers = place.answer_run(correlations, partition.index, run)
        self._usage.bytes_out += len(answers)
        if place.acks == _ACKS_ALL and partition.high_watermark < run.end_offset:
            numbers = [_CORRELATION.unpack(correlation)[0] for correlation in correlations]
            return Later(run_acked(place, partition, run, numbers, answers), is_next_allowed=True), count - 1
        return Outcome((answers,)), count - 1

    # --- several batches

    def _on_many(self, frame_view: memoryview, place: Place, position: int) -> Outcome | Later | None:
        count = frame_view[position] - 1
        if place.is_transactional or not 0 < count <= PARTITIONS_MAX:
            return None
        batches = batches_of(frame_view, position + 1, count)
        if batches is None:
            return None
        for index, records in batches.items():
            if self._partition(place, index) is None or records[ATTRIBUTES_LOW_BYTE] & TRANSACTIONAL_BIT:
                return None
        try:
            return self._produce_many(frame_view, place, batches)
        except Exception:
            log.exception("Produce v%d from %s failed", place.version, self._session.peer)
            return HANG_UP

    def _produce_many(
        self, frame_view: memoryview, place: Place, batches: dict[int, memoryview]
    ) -> Outcome | Later | None:
        written = self._append_until_refused(place, batches)
        if not written:
            return None
        self._count_in(frame_view)
        tenant = written[0][0].name.tenant
        self._broker.usage.of(tenant).records_in += sum(appended.record_count for _, appended in written)
        if len(written) < len(batches):
            rest = dict(list(batches.items())[len(written) :])
            return self._go_on_ordinarily(frame_view, place, written, rest)
        if place.acks == _ACKS_NONE:
            return NO_ANSWER
        answer = place.answer_many(frame_view[4:8], written)
        self._usage.bytes_out += len(answer)
        if place.acks == _ACKS_ALL and any(each.high_watermark < done.end_offset for each, done in written):
            return self._later(place, written, answer)
        return Outcome((answer,))

    def _append_until_refused(self, place: Place, batches: dict[int, memoryview]) -> list[Written]:
        """What was appended, from the first one on."""
        written: list[Written] = []
        for index, records in batches.items():
            partition = place.partitions[index]
            try:
                appended = partition.append(records, produce_version=place.version, acks=place.acks)
            except BrokerError:
                break  # of this batch nothing was appended: the ordinary way finds the same, and says it
            written.append((partition, appended))
        return written

    def _go_on_ordinarily(
        self, frame_view: memoryview, place: Place, written: Sequence[Written], rest: dict[int, memoryview]
    ) -> Outcome | Later:
        partitions = [PartitionProduceData(index=index, records=records) for index, records in rest.items()]
        topic = TopicProduceData(name=place.topic.name, topic_id=place.topic.topic_id, partition_data=partitions)
        request = ProduceRequest(acks=place.acks, timeout_ms=place.timeout_ms, topic_data=[topic])
        session = self._session
        try:
            answer = produce.handle(request, Call(self._broker, session, session.caller, place.version, None))
        except BrokerError as error:
            answer = produce.refuse(request, error)
        if place.acks == _ACKS_NONE:
            return HANG_UP  # some batch was refused, and there is no other way to tell
        assert isinstance(answer, ProduceResponse | Awaitable), "nothing here is transactional"
        (correlation_id,) = _CORRELATION.unpack_from(frame_view, 4)
        return Later(acked_with_rest(place, written, correlation_id, answer), is_next_allowed=True)

    # --- acks=all

    def _later(self, place: Place, written: Sequence[Written], answer: bytes) -> Later:
        return Later(acked(place, written, answer), is_next_allowed=True)

    # --- learning

    def learn(self, frame_view: memoryview, version: int, request: ProduceRequest) -> None:
        """The ordinary way was taken by a caller who may: the next one like it need not."""
        if version < FLEXIBLE_SINCE or len(request.topic_data) != 1:
            return
        likeness_end = partitions_position(frame_view, version)
        if likeness_end is None or likeness_end > _LIKENESS_BYTES_MAX:
            return
        self._keep_up()
        likeness = bytes(frame_view[_LIKENESS_START:likeness_end])
        place = self._places.get(likeness)
        if place is None or place.version != version:
            place = Place(request, version)
        found = [self._learn_partition(place, data.index) for data in request.topic_data[0].partition_data]
        if not found or None in found:
            return
        if likeness not in self._places and len(self._places) >= _PLACES_MAX:
            self._places.clear()
        self._places[likeness] = place
        self._likeness_end = likeness_end

    def _keep_up(self) -> None:
        """With another image, or another caller, nothing that was learned holds."""
        session = self._session
        if self._image is not self._broker.image or self._principal is not self._sasl.principal:
            self._places.clear()
            self._image, self._principal = self._broker.image, self._sasl.principal
            self._usage = self._broker.usage.of(session.caller.tenant)

    def _learn_partition(self, place: Place, index: int) -> LocalPartition | None:
        """Where this caller may produce to it, and it is led here."""
        session = self._session
        if not self._sasl.is_authenticated or session.caller.is_bare_gateway:
            return None
        call = Call(self._broker, session, session.caller, place.version, None)
        try:
            image = find_topic(call, place.topic.name, place.topic.topic_id)
            if is_internal_topic(image.name):
                return None
            partition = led_partition(call, image, index)
        except BrokerError:
            return None
        place.partitions[index] = partition
        return partition
