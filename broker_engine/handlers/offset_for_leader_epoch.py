"""OffsetForLeaderEpoch (key 23), versions 2-4: where the records of a leader epoch end. Left out: replicas' own use
of it.
"""

from __future__ import annotations

from broker_engine.errors import BrokerError
from broker_engine.handlers.api import Api, Call, Scope
from broker_engine.handlers.topics import check_leader_epoch, find_topic, led_partition
from broker_engine.ids import NO_TOPIC_ID
from broker_engine.wire.messages.offset_for_leader_epoch import (
    EpochEndOffset,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderPartition,
    OffsetForLeaderTopicResult,
)


def handle(request: OffsetForLeaderEpochRequest, call: Call) -> OffsetForLeaderEpochResponse:
    return OffsetForLeaderEpochResponse(
        topics=[
            OffsetForLeaderTopicResult(
                topic=topic.topic, partitions=[_answer(topic.topic, each, call) for each in topic.partitions]
            )
            for topic in request.topics
        ]
    )


def refuse(request: OffsetForLeaderEpochRequest, error: BrokerError) -> OffsetForLeaderEpochResponse:
    return OffsetForLeaderEpochResponse(
        topics=[
            OffsetForLeaderTopicResult(
                topic=topic.topic, partitions=[_failure(each, error) for each in topic.partitions]
            )
            for topic in request.topics
        ]
    )


def _answer(name: str, asked: OffsetForLeaderPartition, call: Call) -> EpochEndOffset:
    try:
        partition = led_partition(call, find_topic(call, name, NO_TOPIC_ID), asked.partition)
        check_leader_epoch(partition, asked.current_leader_epoch)
    except BrokerError as error:
        return _failure(asked, error)
    epoch, end_offset = partition.end_offset_for_epoch(asked.leader_epoch)
    return EpochEndOffset(partition=asked.partition, leader_epoch=epoch, end_offset=end_offset)


def _failure(asked: OffsetForLeaderPartition, error: BrokerError) -> EpochEndOffset:
    return EpochEndOffset(partition=asked.partition, error_code=error.code)


API = Api(request=OffsetForLeaderEpochRequest, scope=Scope.TOPICS, handle=handle, refuse=refuse)
