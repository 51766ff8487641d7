"""OffsetCommit (key 8), versions 2-10. By a member in its generation or epoch, or by anybody while the group has no
members.

Each partition has a code of its own; what is refused keeps nothing of the rest from being committed.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from broker_engine.errors import BrokerError, ErrorCode
from broker_engine.groups.consumer.commits import CommitAsk
from broker_engine.groups.shard import NewOffset
from broker_engine.handlers.api import Api, Call, Scope
from broker_engine.handlers.groups import any_group_name
from broker_engine.handlers.topics import find_topic
from broker_engine.metadata.image import TopicImage
from broker_engine.names import physical
from broker_engine.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)

_FIRST_VERSION_WITH_EPOCHS = 9


@dataclass(slots=True)
class _Wish:
    answer: OffsetCommitResponsePartition
    offset: NewOffset


async def handle(request: OffsetCommitRequest, call: Call) -> OffsetCommitResponse:
    name = any_group_name(call, request.group_id)
    groups = call.broker.groups
    wishes: list[_Wish] = []
    topics = [_topic(topic, request.retention_time_ms, call, wishes) for topic in request.topics]
    ask = CommitAsk(
        member_id=request.member_id,
        instance_id=request.group_instance_id,
        epoch=request.generation_id_or_member_epoch,
        places=[(wish.offset.topic_id, wish.offset.partition) for wish in wishes],
        knows_epochs=call.version >= _FIRST_VERSION_WITH_EPOCHS,
    )
    code = groups.check_commit(name, ask)
    if code is not ErrorCode.NONE:
        return refuse(request, BrokerError(code))
    code = await groups.commit(name, [wish.offset for wish in wishes])
    for wish in wishes:
        wish.answer.error_code = code
    return OffsetCommitResponse(topics=topics)


def refuse(request: OffsetCommitRequest, error: BrokerError) -> OffsetCommitResponse:
    return OffsetCommitResponse(topics=[_refused(topic, error.code) for topic in request.topics])


def _refused(topic: OffsetCommitRequestTopic, code: ErrorCode) -> OffsetCommitResponseTopic:
    return OffsetCommitResponseTopic(
        name=topic.name,
        topic_id=topic.topic_id,
        partitions=[
            OffsetCommitResponsePartition(partition_index=each.partition_index, error_code=code)
            for each in topic.partitions
        ],
    )


def _topic(
    topic: OffsetCommitRequestTopic, retention_ms: int, call: Call, wishes: list[_Wish]
) -> OffsetCommitResponseTopic:
    try:
        image = find_topic(call, topic.name, topic.topic_id)
    except BrokerError as error:
        return _refused(topic, error.code)
    partitions = list(_partitions(topic.partitions, image, retention_ms, call, wishes))
    return OffsetCommitResponseTopic(name=topic.name, topic_id=topic.topic_id, partitions=partitions)


def _partitions(
    asked: Iterable[OffsetCommitRequestPartition],
    image: TopicImage,
    retention_ms: int,
    call: Call,
    wishes: list[_Wish],
) -> Iterable[OffsetCommitResponsePartition]:
    for each in asked:
        answer = OffsetCommitResponsePartition(partition_index=each.partition_index)
        metadata = each.committed_metadata or ""
        if each.partition_index not in image.partitions:
            answer.error_code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        elif len(metadata.encode()) > call.broker.config.offset_metadata_max_bytes:
            answer.error_code = ErrorCode.OFFSET_METADATA_TOO_LARGE
        else:
            place = (physical(image.name), each.partition_index)
            epoch = each.committed_leader_epoch
            new = NewOffset(*place, each.committed_offset, epoch, metadata, image.id, retention_ms)
            wishes.append(_Wish(answer, new))
        yield answer


API = Api(request=OffsetCommitRequest, scope=Scope.GROUPS, handle=handle, refuse=refuse)
