"""ListOffsets (key 2), versions 1-11. Timestamps -1 latest, -2 and -4 earliest, -3 highest timestamp; -5 and -6 are
about tiered storage, which we have not: offset -1, no error, as Kafka without it. Left out: the time-out of v10
(nothing waits).
"""

from __future__ import annotations

import asyncio
from collections.abc import Container

from broker_engine.errors import BrokerError, ErrorCode
from broker_engine.handlers.api import Api, Call, Scope
from broker_engine.handlers.topics import check_leader_epoch, find_topic, led_partition
from broker_engine.ids import NO_TOPIC_ID
from broker_engine.log.timestamps import TimestampOffset
from broker_engine.metadata.decision import repeated
from broker_engine.server.local_partition import LocalPartition
from broker_engine.wire.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
    ListOffsetsTopicResponse,
)

LATEST, EARLIEST, MAX_TIMESTAMP, EARLIEST_LOCAL, LATEST_TIERED, EARLIEST_PENDING_UPLOAD = -1, -2, -3, -4, -5, -6
_FIRST_VERSION_OF = {
    LATEST: 0,
    EARLIEST: 0,
    MAX_TIMESTAMP: 7,
    EARLIEST_LOCAL: 8,
    LATEST_TIERED: 9,
    EARLIEST_PENDING_UPLOAD: 11,
}
_READ_COMMITTED = 1
_FIRST_VERSION_WITH_NOT_AVAILABLE = 5

Found = tuple[int, int, int]
"""timestamp, offset, leader epoch"""
_NOTHING: Found = (-1, -1, -1)


async def handle(request: ListOffsetsRequest, call: Call) -> ListOffsetsResponse:
    is_committed_only = request.isolation_level == _READ_COMMITTED
    twice = repeated((topic.name, each.partition_index) for topic in request.topics for each in topic.partitions)
    return ListOffsetsResponse(
        topics=[await _answer_topic(topic, twice, is_committed_only, call) for topic in request.topics]
    )


def refuse(request: ListOffsetsRequest, error: BrokerError) -> ListOffsetsResponse:
    return ListOffsetsResponse(
        topics=[
            ListOffsetsTopicResponse(name=topic.name, partitions=[_failure(each, error) for each in topic.partitions])
            for topic in request.topics
        ]
    )


async def _answer_topic(
    topic: ListOffsetsTopic, twice: Container[tuple[str, int]], is_committed_only: bool, call: Call
) -> ListOffsetsTopicResponse:
    answers = []
    for partition in topic.partitions:
        try:
            if (topic.name, partition.partition_index) in twice:
                raise BrokerError(ErrorCode.INVALID_REQUEST)
            answers.append(await _answer(topic.name, partition, is_committed_only, call))
        except BrokerError as error:
            answers.append(_failure(partition, _in_words_of(call.version, error)))
    return ListOffsetsTopicResponse(name=topic.name, partitions=answers)


def _in_words_of(version: int, error: BrokerError) -> BrokerError:
    """Older clients know another code for a leader whose term has just begun."""
    is_new_code = error.code is ErrorCode.OFFSET_NOT_AVAILABLE and version < _FIRST_VERSION_WITH_NOT_AVAILABLE
    return BrokerError(ErrorCode.LEADER_NOT_AVAILABLE) if is_new_code else error


async def _answer(
    name: str, asked: ListOffsetsPartition, is_committed_only: bool, call: Call
) -> ListOffsetsPartitionResponse:
    if asked.timestamp < 0 and call.version < _FIRST_VERSION_OF.get(asked.timestamp, call.version + 1):
        raise BrokerError(ErrorCode.UNSUPPORTED_VERSION)
    partition = led_partition(call, find_topic(call, name, NO_TOPIC_ID), asked.partition_index)
    check_leader_epoch(partition, asked.current_leader_epoch)
    timestamp, offset, epoch = await _find(partition, asked.timestamp, is_committed_only)
    return ListOffsetsPartitionResponse(
        partition_index=asked.partition_index,
        timestamp=timestamp,
        offset=offset,
        leader_epoch=epoch if call.version >= 4 else -1,
    )


async def _find(partition: LocalPartition, timestamp: int, is_committed_only: bool) -> Found:
    end_offset = partition.last_stable_offset if is_committed_only else partition.high_watermark
    if timestamp == LATEST:
        if not partition.knows_latest_offset:
            raise BrokerError(ErrorCode.OFFSET_NOT_AVAILABLE)
        return -1, end_offset, partition.leader_epoch
    if timestamp in (EARLIEST, EARLIEST_LOCAL):
        return -1, partition.log_start_offset, partition.epoch_of(partition.log_start_offset)
    if timestamp in (LATEST_TIERED, EARLIEST_PENDING_UPLOAD):
        return _NOTHING
    found = await asyncio.to_thread(_look_up, partition, timestamp, end_offset)
    if found is None and not partition.knows_latest_offset:
        raise BrokerError(ErrorCode.OFFSET_NOT_AVAILABLE)
    return _NOTHING if found is None else (found.timestamp, found.offset, found.leader_epoch)


def _look_up(partition: LocalPartition, timestamp: int, end_offset: int) -> TimestampOffset | None:
    """In a thread: batches are read and may have to be decompressed."""
    try:
        if timestamp == MAX_TIMESTAMP:
            return partition.find_max_timestamp(end_offset)
        return partition.find_by_timestamp(timestamp, end_offset)
    except ValueError as error:  # retention took the segment away under us: the client asks again
        raise BrokerError(ErrorCode.OFFSET_NOT_AVAILABLE) from error


def _failure(partition: ListOffsetsPartition, error: BrokerError) -> ListOffsetsPartitionResponse:
    return ListOffsetsPartitionResponse(partition_index=partition.partition_index, error_code=error.code)


API = Api(request=ListOffsetsRequest, scope=Scope.TOPICS, handle=handle, refuse=refuse)
