"""DescribeLogDirs (key 35), versions 1-4: sizes of the partitions that this broker holds, and how far each lags behind.

A tenant sees its own topics, and neither where the directory is nor how full the disk is. Left out: v5 (cordoned
directories), replicas that move between directories (a broker has one).
"""

from __future__ import annotations

from collections.abc import Iterable

from broker_engine.errors import BrokerError
from broker_engine.handlers.api import Api, Call, Scope
from broker_engine.handlers.topics import asked_once, topic_by_name, visible_topics, wire_name
from broker_engine.metadata.image import TopicImage
from broker_engine.server.local_partition import LocalPartition
from broker_engine.wire.messages.describe_log_dirs import (
    DescribableLogDirTopic,
    DescribeLogDirsPartition,
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
    DescribeLogDirsResult,
    DescribeLogDirsTopic,
)

HIDDEN_DIRECTORY = "/data"


def handle(request: DescribeLogDirsRequest, call: Call) -> DescribeLogDirsResponse:
    everything = ((topic, None) for topic in visible_topics(call))
    topics = everything if request.topics is None else _named(request.topics, call)
    answers = [answer for topic, indexes in topics if (answer := _describe(topic, indexes, call)).partitions]
    if not call.principal.is_root:
        return DescribeLogDirsResponse(results=[DescribeLogDirsResult(log_dir=HIDDEN_DIRECTORY, topics=answers)])
    floor, directories = call.broker.disk_floor, call.broker.config.log_dirs
    result = DescribeLogDirsResult(
        log_dir=directories[0] if directories else HIDDEN_DIRECTORY,
        topics=answers,
        total_bytes=floor.total_bytes,
        usable_bytes=floor.free_bytes,
    )
    return DescribeLogDirsResponse(results=[result])


def refuse(request: DescribeLogDirsRequest, error: BrokerError) -> DescribeLogDirsResponse:
    return DescribeLogDirsResponse(error_code=error.code, results=[DescribeLogDirsResult(error_code=error.code)])


def _named(asked: Iterable[DescribableLogDirTopic], call: Call) -> Iterable[tuple[TopicImage, frozenset[int]]]:
    for name, indexes in asked_once((one.topic, one.partitions) for one in asked).items():
        topic = topic_by_name(call, name)
        if topic is not None:
            yield topic, frozenset(indexes)


def _describe(topic: TopicImage, indexes: frozenset[int] | None, call: Call) -> DescribeLogDirsTopic:
    rows = []
    for index in sorted(topic.partitions):
        local = call.broker.partitions.find(topic.id, index)
        if local is not None and (indexes is None or index in indexes):
            rows.append(_partition(index, local))
    return DescribeLogDirsTopic(name=wire_name(call, topic), partitions=rows)


def _partition(index: int, local: LocalPartition) -> DescribeLogDirsPartition:
    lag = max(0, local.high_watermark - local.log.log_end_offset)
    return DescribeLogDirsPartition(partition_index=index, partition_size=local.log.size_bytes, offset_lag=lag)


API = Api(request=DescribeLogDirsRequest, scope=Scope.TOPICS, handle=handle, refuse=refuse)
