"""Produce (key 0), versions 3-13; 0 is advertised as the first one, as Kafka 4 does for old librdkafka (KAFKA-18659).

One batch per partition, checked and appended at once; acks=all then waits for the high watermark, and the
connection's next request may begin meanwhile. A failed acks=0 request closes the connection: the client has no other
way to learn of it. Who came to the wrong broker is told the right one (KIP-951, from v10).

The first batch of a transaction in a partition waits for the transaction's coordinator (KIP-890): up to v11 it says
whether the partition was added before, from v12 it adds it. Until then the connection's next request waits, so that a
producer's batches stay in order; batches of a transaction that is open here need nobody's word.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Iterator
from dataclasses import dataclass, field
from typing import Any

from broker_engine.errors import BrokerError, ErrorCode
from broker_engine.handlers.api import Answer, Api, Call, Held, Reply, Scope
from broker_engine.handlers.topics import find_topic, hinted_nodes, leader_hint, led_partition
from broker_engine.handlers.verification import ask_coordinator, refusal_of
from broker_engine.metadata.image import TopicImage
from broker_engine.names import from_wire, is_internal_topic, physical
from broker_engine.partition.verification import Guard
from broker_engine.records.header import (
    ATTRIBUTES_LOW_BYTE,
    HEADER_SIZE_BYTES,
    TRANSACTIONAL_BIT,
    BatchHeader,
    parse_header,
)
from broker_engine.server.acks import AckWait
from broker_engine.server.markers import TopicPartition
from broker_engine.wire.messages.produce import (
    BatchIndexAndErrorMessage,
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
    TopicProduceResponse,
)

ALL, LEADER, NONE = -1, 1, 0
_NO_OFFSET = -1
_FIRST_VERSION_WITH_HINTS = 10
_FIRST_VERSION_WITH_ABORTABLE = 11
_FIRST_VERSION_THAT_ADDS = 12
_TO_BE_SENT_AGAIN = frozenset(
    {ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.NOT_ENOUGH_REPLICAS, ErrorCode.KAFKA_STORAGE_ERROR}
)

ProduceAnswer = Answer[ProduceResponse] | Awaitable[Answer[ProduceResponse]]


@dataclass(slots=True)
class _Verification:
    """What the coordinator is asked about, and what came of it."""

    header: BatchHeader
    guards: dict[TopicPartition, Guard]
    refusals: dict[TopicPartition, BrokerError] = field(default_factory=dict)


def handle(request: ProduceRequest, call: Call) -> ProduceAnswer | Held[ProduceResponse]:
    try:
        _check_broker(call)
    except BrokerError as error:
        _note_refused(request, call, error.code)
        raise
    _check_request(request)
    verification = None if request.transactional_id is None else _begin_verification(request, call)
    if verification is not None:
        return Held(_verify_and_append(request, call, verification))
    return _append(request, call, None)


def _append(request: ProduceRequest, call: Call, verified: _Verification | None) -> ProduceAnswer:
    wait = AckWait(asyncio.get_running_loop())
    responses = [_produce_topic(topic, request.acks, call, wait, verified) for topic in request.topic_data]
    response = ProduceResponse(responses=responses)
    if wait.has_misdirected and call.version >= _FIRST_VERSION_WITH_HINTS:
        response.node_endpoints = _endpoints(response, call)
    if request.acks == NONE:
        return Reply(None, is_last=_has_failure(response))
    if wait.is_over:
        return response
    wait.start_timer(max(0, request.timeout_ms) / 1000)
    return _answer_when_acked(response, wait)


def refuse(request: ProduceRequest, error: BrokerError) -> ProduceResponse:
    return ProduceResponse(
        responses=[
            TopicProduceResponse(
                name=topic.name,
                topic_id=topic.topic_id,
                partition_responses=[_failure(partition.index, error) for partition in topic.partition_data],
            )
            for topic in request.topic_data
        ]
    )


async def _answer_when_acked(response: ProduceResponse, wait: AckWait) -> ProduceResponse:
    await wait.wait()
    return response


def _check_broker(call: Call) -> None:
    call.broker.disk_floor.check_writable()
    if call.broker.is_self_fenced:
        raise BrokerError(ErrorCode.NOT_LEADER_OR_FOLLOWER, "this broker does not hear the controller")


def _note_refused(request: ProduceRequest, call: Call, code: ErrorCode) -> None:
    for topic in request.topic_data:
        try:
            image = find_topic(call, topic.name, topic.topic_id)
        except BrokerError:
            continue
        for data in topic.partition_data:
            _note_batch(image, data, call, code)


def _note_batch(image: TopicImage, data: PartitionProduceData, call: Call, code: ErrorCode) -> None:
    """So that pipelined batches that come when all is well again are not taken for out of order. Also where this broker
    does not lead: it may be about to.
    """
    local = call.broker.partitions.find(image.id, data.index)
    records: Any = data.records
    if local is not None and records is not None and len(records) >= HEADER_SIZE_BYTES:
        local.note_refused(parse_header(records), code)


def _check_request(request: ProduceRequest) -> None:
    if request.acks not in (ALL, LEADER, NONE):
        raise BrokerError(ErrorCode.INVALID_REQUIRED_ACKS, "acks is -1, 0 or 1")
    if request.transactional_id is not None:
        return
    if any(_is_transactional(partition) for topic in request.topic_data for partition in topic.partition_data):
        raise BrokerError(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED, "a transactional batch without an id")


def _is_transactional(partition: PartitionProduceData) -> bool:
    records: Any = partition.records
    return (
        records is not None
        and len(records) > ATTRIBUTES_LOW_BYTE
        and bool(records[ATTRIBUTES_LOW_BYTE] & TRANSACTIONAL_BIT)
    )


# --- verification


def _begin_verification(request: ProduceRequest, call: Call) -> _Verification | None:
    """None where nobody has to be asked: no batch is transactional, or all their transactions are open here."""
    guards: dict[TopicPartition, Guard] = {}
    first: BatchHeader | None = None
    for place, header, guard in _transactional_batches(request, call):
        first = header if first is None else first
        if (first.producer_id, first.producer_epoch) != (header.producer_id, header.producer_epoch):
            raise BrokerError(ErrorCode.INVALID_PRODUCER_ID_MAPPING, "transactional batches of several producers")
        if guard is not None:
            guards[place] = guard
    return None if first is None or not guards else _Verification(first, guards)


def _transactional_batches(
    request: ProduceRequest, call: Call
) -> Iterator[tuple[TopicPartition, BatchHeader, Guard | None]]:
    """Of partitions that are led here: the others are refused anyway."""
    for topic in request.topic_data:
        for data in filter(_is_transactional, topic.partition_data):
            try:
                image = find_topic(call, topic.name, topic.topic_id)
                core = led_partition(call, image, data.index).core
            except BrokerError:
                continue
            records: Any = data.records
            if len(records) >= HEADER_SIZE_BYTES and not is_internal_topic(image.name):
                header = parse_header(records)
                is_adding = call.version >= _FIRST_VERSION_THAT_ADDS
                guard = core.producers.begin_verification(header, is_adding=is_adding)
                yield (physical(image.name), data.index), header, guard


async def _verify_and_append(request: ProduceRequest, call: Call, verification: _Verification) -> ProduceAnswer:
    """What is appended then waits for its acknowledgement as ever: the next request may begin."""

    asked = list(verification.guards)

    def take_guards() -> None:
        anew = _guards_now(request, call)
        verification.guards.update({place: guard for place, guard in anew.items() if place in asked})

    codes = await ask_coordinator(
        call.broker,
        physical(from_wire(request.transactional_id or "", call.tenant)),
        verification.header.producer_id,
        verification.header.producer_epoch,
        asked,
        is_adding=call.version >= _FIRST_VERSION_THAT_ADDS,
        take_guards=take_guards,
    )
    for place, code in codes.items():
        refusal = refusal_of(
            code,
            is_abortable_known=call.version >= _FIRST_VERSION_WITH_ABORTABLE,
            try_again=ErrorCode.NOT_ENOUGH_REPLICAS,  # all clients send again, and none asks for metadata first
        )
        if refusal is not None:
            verification.refusals[place] = refusal
    for place in _guards_now(request, call).keys() - asked:
        # The coordinator does not know of it, and would not end what is begun there: it has to come again.
        verification.refusals[place] = BrokerError(
            ErrorCode.NOT_LEADER_OR_FOLLOWER, "the partition came to be led here while others were asked about"
        )
    return _append(request, call, verification)


def _guards_now(request: ProduceRequest, call: Call) -> dict[TopicPartition, Guard]:
    verification = _begin_verification(request, call)
    return {} if verification is None else verification.guards


# --- appending


def _produce_topic(
    topic: TopicProduceData, acks: int, call: Call, wait: AckWait, verified: _Verification | None
) -> TopicProduceResponse:
    # A partition that is named twice gets one append and one answer, as with Kafka.
    partitions = {partition.index: partition for partition in topic.partition_data}.values()
    try:
        image = find_topic(call, topic.name, topic.topic_id)
        if is_internal_topic(image.name):
            raise BrokerError(ErrorCode.INVALID_TOPIC_EXCEPTION, "only the broker writes to this topic")
        answers = [_produce(image, partition, acks, call, wait, verified=verified) for partition in partitions]
    except BrokerError as error:
        answers = [_failure(partition.index, error) for partition in partitions]
    return TopicProduceResponse(name=topic.name, topic_id=topic.topic_id, partition_responses=answers)


def _produce(
    image: TopicImage,
    data: PartitionProduceData,
    acks: int,
    call: Call,
    wait: AckWait,
    *,
    verified: _Verification | None,
) -> PartitionProduceResponse:
    try:
        partition = led_partition(call, image, data.index)
        if data.records is None:
            raise BrokerError(ErrorCode.INVALID_RECORD, "there is no record batch")
        guard = None if verified is None else _guard(image, data, verified)
        appended = partition.append(memoryview(data.records), produce_version=call.version, acks=acks, guard=guard)
    except BrokerError as error:
        response = _failure(data.index, error)
        if error.code in _TO_BE_SENT_AGAIN:
            _note_batch(image, data, call, error.code)
        if error.code is ErrorCode.NOT_LEADER_OR_FOLLOWER and call.version >= _FIRST_VERSION_WITH_HINTS:
            leader_id, leader_epoch = leader_hint(call, image, data.index)
            response.current_leader = LeaderIdAndEpoch(leader_id=leader_id, leader_epoch=leader_epoch)
            wait.has_misdirected = True
        return response
    call.broker.usage.of(image.name.tenant).records_in += appended.record_count
    response = PartitionProduceResponse(
        index=data.index,
        base_offset=appended.base_offset,
        log_append_time_ms=appended.log_append_time_ms,
        log_start_offset=appended.log_start_offset,
    )
    if acks == ALL:
        partition.when_acked(appended.end_offset, wait.expect(response))
    return response


def _guard(image: TopicImage, data: PartitionProduceData, verified: _Verification) -> Guard | None:
    """BrokerError where the coordinator refused."""
    place = (physical(image.name), data.index)
    refusal = verified.refusals.get(place)
    if refusal is not None and _is_transactional(data):
        raise refusal
    return verified.guards.get(place)


def _endpoints(response: ProduceResponse, call: Call) -> list[NodeEndpoint]:
    partitions = (partition for topic in response.responses for partition in topic.partition_responses)
    nodes = hinted_nodes(call, (partition.current_leader.leader_id for partition in partitions))
    return [NodeEndpoint(node_id=node.id, host=node.host, port=node.port, rack=node.rack) for node in nodes]


def _failure(index: int, error: BrokerError) -> PartitionProduceResponse:
    return PartitionProduceResponse(
        index=index,
        error_code=error.code,
        base_offset=_NO_OFFSET,
        error_message=error.message or None,
        record_errors=[
            BatchIndexAndErrorMessage(batch_index=batch_index, batch_index_error_message=text)
            for batch_index, text in error.record_errors
        ],
    )


def _has_failure(response: ProduceResponse) -> bool:
    return any(
        partition.error_code != ErrorCode.NONE
        for topic in response.responses
        for partition in topic.partition_responses
    )


API = Api(
    request=ProduceRequest,
    scope=Scope.TOPICS,
    handle=handle,
    refuse=refuse,
    advertised_min_version=0,
    is_next_allowed=True,
    is_answered=lambda request: request.acks != NONE,
)
