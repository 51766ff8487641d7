"""Produce (key 0), versions 3-13; 0 is advertised as the first one, as Kafka 4 does for old librdkafka (KAFKA-18659).

One batch per partition, checked and appended at once; acks=all then waits for the high watermark, and the
connection's next request may begin meanwhile. A failed acks=0 request closes the connection: the client has no other
way to learn of it. Who came to the wrong broker is told the right one (KIP-951, from v10). Left out: transactions (a
transactional id is refused with 49).
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import Any

from broker_engine.errors import BrokerError, ErrorCode
from broker_engine.handlers.api import Answer, Api, Call, Reply, Scope
from broker_engine.handlers.topics import find_topic, hinted_nodes, leader_hint, led_partition
from broker_engine.metadata.image import TopicImage
from broker_engine.names import is_internal_topic
from broker_engine.records.header import TRANSACTIONAL_BIT
from broker_engine.server.acks import AckWait
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
_ATTRIBUTES_LOW_BYTE = 22
"""Where a batch's attributes have their lower byte."""
_NO_OFFSET = -1
_FIRST_VERSION_WITH_HINTS = 10


def handle(request: ProduceRequest, call: Call) -> Answer[ProduceResponse] | Awaitable[Answer[ProduceResponse]]:
    call.broker.disk_floor.check_writable()
    if call.broker.is_self_fenced:
        raise BrokerError(ErrorCode.NOT_LEADER_OR_FOLLOWER, "this broker does not hear the controller")
    _check_request(request)
    wait = AckWait(asyncio.get_running_loop())
    responses = [_produce_topic(topic, request.acks, call, wait) for topic in request.topic_data]
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


def _check_request(request: ProduceRequest) -> None:
    if request.acks not in (ALL, LEADER, NONE):
        raise BrokerError(ErrorCode.INVALID_REQUIRED_ACKS, "acks is -1, 0 or 1")
    if request.transactional_id is not None:
        raise BrokerError(ErrorCode.INVALID_PRODUCER_ID_MAPPING, "this broker has no transactions yet")
    if any(_is_transactional(partition) for topic in request.topic_data for partition in topic.partition_data):
        raise BrokerError(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED, "a transactional batch without an id")


def _is_transactional(partition: PartitionProduceData) -> bool:
    records: Any = partition.records
    return (
        records is not None
        and len(records) > _ATTRIBUTES_LOW_BYTE
        and bool(records[_ATTRIBUTES_LOW_BYTE] & TRANSACTIONAL_BIT)
    )


def _produce_topic(topic: TopicProduceData, acks: int, call: Call, wait: AckWait) -> TopicProduceResponse:
    # A partition that is named twice gets one append and one answer, as with Kafka.
    partitions = {partition.index: partition for partition in topic.partition_data}.values()
    try:
        image = find_topic(call, topic.name, topic.topic_id)
        if is_internal_topic(image.name):
            raise BrokerError(ErrorCode.INVALID_TOPIC_EXCEPTION, "only the broker writes to this topic")
        answers = [_produce(image, partition, acks, call, wait) for partition in partitions]
    except BrokerError as error:
        answers = [_failure(partition.index, error) for partition in partitions]
    return TopicProduceResponse(name=topic.name, topic_id=topic.topic_id, partition_responses=answers)


def _produce(
    image: TopicImage, data: PartitionProduceData, acks: int, call: Call, wait: AckWait
) -> PartitionProduceResponse:
    try:
        partition = led_partition(call, image, data.index)
        if data.records is None:
            raise BrokerError(ErrorCode.INVALID_RECORD, "there is no record batch")
        appended = partition.append(memoryview(data.records), produce_version=call.version, acks=acks)
    except BrokerError as error:
        response = _failure(data.index, error)
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
