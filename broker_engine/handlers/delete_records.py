"""DeleteRecords (key 21), versions 0-2. Records below the offset are gone once it is answered, also after a crash.

The log start never passes what is on disk: where the records are not, they are flushed first. Left out: waiting for
followers' log starts within the request's time (with replication).
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

from broker_engine.errors import BrokerError, ErrorCode
from broker_engine.handlers.api import Api, Call, Scope
from broker_engine.handlers.topics import led_partition, topic_by_name
from broker_engine.log.retention import DeletedSegment
from broker_engine.metadata.image import TopicImage
from broker_engine.names import is_internal_topic
from broker_engine.server.local_partition import LocalPartition
from broker_engine.wire.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsPartitionResult,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopic,
    DeleteRecordsTopicResult,
)

_NO_WATERMARK = -1


async def handle(request: DeleteRecordsRequest, call: Call) -> DeleteRecordsResponse:
    deleted: list[DeletedSegment] = []
    answers = [await _answer_topic(topic, call, deleted) for topic in request.topics]
    try:
        await call.broker.log_starts.write()
        await asyncio.to_thread(_remove, deleted)
    except OSError as error:
        raise BrokerError(ErrorCode.KAFKA_STORAGE_ERROR, f"the disk: {error.strerror}") from error
    return DeleteRecordsResponse(topics=answers)


def refuse(request: DeleteRecordsRequest, error: BrokerError) -> DeleteRecordsResponse:
    return DeleteRecordsResponse(
        topics=[
            DeleteRecordsTopicResult(name=topic.name, partitions=[_failure(each, error) for each in topic.partitions])
            for topic in request.topics
        ]
    )


async def _answer_topic(
    topic: DeleteRecordsTopic, call: Call, deleted: list[DeletedSegment]
) -> DeleteRecordsTopicResult:
    answers = []
    for asked in topic.partitions:
        try:
            partition = led_partition(call, _find(call, topic.name), asked.partition_index)
            deleted += await _delete(partition, asked.offset)
            answers.append(_success(asked, partition))
        except BrokerError as error:
            answers.append(_failure(asked, error))
    return DeleteRecordsTopicResult(name=topic.name, partitions=answers)


def _find(call: Call, name: str) -> TopicImage:
    topic = topic_by_name(call, name)
    if topic is None:
        raise BrokerError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    if is_internal_topic(topic.name):
        raise BrokerError(ErrorCode.INVALID_TOPIC_EXCEPTION)
    return topic


async def _delete(partition: LocalPartition, asked_offset: int) -> list[DeletedSegment]:
    offset = partition.deletable_offset(asked_offset)
    await partition.wait_until_durable(offset)
    return partition.delete_records_before(offset)


def _remove(deleted: Iterable[DeletedSegment]) -> None:
    for segment in deleted:
        segment.remove()


def _success(asked: DeleteRecordsPartition, partition: LocalPartition) -> DeleteRecordsPartitionResult:
    return DeleteRecordsPartitionResult(partition_index=asked.partition_index, low_watermark=partition.log_start_offset)


def _failure(asked: DeleteRecordsPartition, error: BrokerError) -> DeleteRecordsPartitionResult:
    return DeleteRecordsPartitionResult(
        partition_index=asked.partition_index, low_watermark=_NO_WATERMARK, error_code=error.code
    )


API = Api(request=DeleteRecordsRequest, scope=Scope.TOPICS, handle=handle, refuse=refuse)
