"""ListPartitionReassignments (key 46), version 0: the moves under way, of the topics that the caller sees.

Every broker answers from its own image. A topic or partition that is not there is left out, as in Kafka.
"""

from __future__ import annotations

from collections.abc import Iterable

from broker_engine.errors import BrokerError
from broker_engine.handlers.api import Api, Call, Scope
from broker_engine.handlers.topics import topic_by_name, visible_topics, wire_name
from broker_engine.metadata.controller import list_reassignments
from broker_engine.metadata.image import PartitionImage, TopicImage
from broker_engine.wire.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
    OngoingPartitionReassignment,
    OngoingTopicReassignment,
)


def handle(request: ListPartitionReassignmentsRequest, call: Call) -> ListPartitionReassignmentsResponse:
    topics = visible_topics(call) if request.topics is None else _named(request, call)
    asked = (
        None
        if request.topics is None
        else {(topic.name, index) for topic in request.topics for index in topic.partition_indexes}
    )
    answers: dict[str, list[OngoingPartitionReassignment]] = {}
    for topic, index, partition in list_reassignments(topics):
        name = wire_name(call, topic)
        if asked is None or (name, index) in asked:
            answers.setdefault(name, []).append(_ongoing(index, partition))
    return ListPartitionReassignmentsResponse(
        error_message=None,
        topics=[OngoingTopicReassignment(name=name, partitions=rows) for name, rows in answers.items()],
    )


def refuse(request: ListPartitionReassignmentsRequest, error: BrokerError) -> ListPartitionReassignmentsResponse:
    return ListPartitionReassignmentsResponse(error_code=error.code, error_message=error.message or None)


def _named(request: ListPartitionReassignmentsRequest, call: Call) -> Iterable[TopicImage]:
    names = dict.fromkeys(topic.name for topic in request.topics or ())
    return [topic for name in names if (topic := topic_by_name(call, name)) is not None]


def _ongoing(index: int, partition: PartitionImage) -> OngoingPartitionReassignment:
    return OngoingPartitionReassignment(
        partition_index=index,
        replicas=list(partition.replicas),
        adding_replicas=list(partition.adding),
        removing_replicas=list(partition.removing),
    )


API = Api(request=ListPartitionReassignmentsRequest, scope=Scope.TOPICS, handle=handle, refuse=refuse)
