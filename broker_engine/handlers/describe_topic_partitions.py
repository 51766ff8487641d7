"""DescribeTopicPartitions (key 75), version 0: topics by name in pages of partitions. Left out: authorized
operations.
"""

from __future__ import annotations

from collections.abc import Iterable

from broker_engine.errors import BrokerError, ErrorCode
from broker_engine.handlers.api import Api, Call, Scope
from broker_engine.handlers.shown_cluster import offline_replicas
from broker_engine.handlers.topics import topic_by_name, visible_topics, wire_name
from broker_engine.ids import NO_LEADER
from broker_engine.metadata.image import PartitionImage, TopicImage
from broker_engine.names import from_wire, is_internal_topic, is_valid_topic_name
from broker_engine.wire.messages.describe_topic_partitions import (
    Cursor,
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
    DescribeTopicPartitionsResponsePartition,
    DescribeTopicPartitionsResponseTopic,
)

PARTITION_LIMIT_MAX = 2000


def handle(request: DescribeTopicPartitionsRequest, call: Call) -> DescribeTopicPartitionsResponse:
    left = max(1, min(request.response_partition_limit, PARTITION_LIMIT_MAX))
    first_name = request.cursor.topic_name if request.cursor else ""
    first_index = request.cursor.partition_index if request.cursor else 0
    answers: list[DescribeTopicPartitionsResponseTopic] = []
    for name, topic in _asked(request, call):
        if name < first_name:
            continue
        start = first_index if name == first_name else 0
        indexes = [] if topic is None else [index for index in sorted(topic.partitions) if index >= start]
        if left == 0 and indexes:
            return DescribeTopicPartitionsResponse(
                topics=answers, next_cursor=Cursor(topic_name=name, partition_index=indexes[0])
            )
        answers.append(_describe(name, topic, indexes[:left], call))
        if len(indexes) > left:
            cursor = Cursor(topic_name=name, partition_index=indexes[left])
            return DescribeTopicPartitionsResponse(topics=answers, next_cursor=cursor)
        left -= len(indexes)
    return DescribeTopicPartitionsResponse(topics=answers)


def refuse(request: DescribeTopicPartitionsRequest, error: BrokerError) -> DescribeTopicPartitionsResponse:
    return DescribeTopicPartitionsResponse(
        topics=[
            DescribeTopicPartitionsResponseTopic(error_code=error.code, name=topic.name) for topic in request.topics
        ]
    )


def _asked(request: DescribeTopicPartitionsRequest, call: Call) -> Iterable[tuple[str, TopicImage | None]]:
    """In the order of names; no names = all topics."""
    if not request.topics:
        return sorted(((wire_name(call, topic), topic) for topic in visible_topics(call)), key=lambda pair: pair[0])
    return ((name, topic_by_name(call, name)) for name in sorted({topic.name for topic in request.topics}))


def _describe(
    name: str, topic: TopicImage | None, indexes: list[int], call: Call
) -> DescribeTopicPartitionsResponseTopic:
    if topic is None:
        is_valid = is_valid_topic_name(from_wire(name, call.tenant).name)
        code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION if is_valid else ErrorCode.INVALID_TOPIC_EXCEPTION
        return DescribeTopicPartitionsResponseTopic(error_code=code, name=name)
    return DescribeTopicPartitionsResponseTopic(
        name=name,
        topic_id=topic.id,
        is_internal=is_internal_topic(topic.name),
        partitions=[_partition(index, topic.partitions[index], call) for index in indexes],
    )


def _partition(index: int, partition: PartitionImage, call: Call) -> DescribeTopicPartitionsResponsePartition:
    has_leader = partition.leader != NO_LEADER
    return DescribeTopicPartitionsResponsePartition(
        error_code=ErrorCode.NONE if has_leader else ErrorCode.LEADER_NOT_AVAILABLE,
        partition_index=index,
        leader_id=partition.leader,
        leader_epoch=partition.leader_epoch,
        replica_nodes=list(partition.replicas),
        isr_nodes=list(partition.isr),
        eligible_leader_replicas=list(partition.elr),
        last_known_elr=list(partition.last_known_elr),
        offline_replicas=offline_replicas(call.broker.image, partition),
    )


API = Api(request=DescribeTopicPartitionsRequest, scope=Scope.TOPICS, handle=handle, refuse=refuse)
