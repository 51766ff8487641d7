"""OffsetFetch (key 9), versions 1-10. Where nothing is committed the offset is -1, without an error.

An offset of a topic that was deleted and made again is not shown: it belongs to the topic id. Who wants stable offsets
(v7) gets 88 where an open transaction would move one. A group or partition that is named twice is answered once.
Left out: the member's epoch (v9), with KIP-848 groups.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from uuid import UUID

from broker_engine.errors import BrokerError, ErrorCode
from broker_engine.groups.pending_offsets import PendingOffsets
from broker_engine.groups.records import OffsetValue
from broker_engine.handlers.api import Api, Call, Scope
from broker_engine.handlers.groups import any_group_name
from broker_engine.handlers.topics import asked_once, is_visible, topic_by_id, topic_by_name, wire_name
from broker_engine.ids import NO_TOPIC_ID
from broker_engine.metadata.image import TopicImage
from broker_engine.names import from_wire, parse_physical, physical
from broker_engine.wire.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartition,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopic,
    OffsetFetchResponseTopics,
)

_FIRST_VERSION_WITH_SEVERAL = 8
_FIRST_VERSION_BY_TOPIC_ID = 10
_NOTHING = -1

Committed = Mapping[tuple[str, int], OffsetValue]


def handle(request: OffsetFetchRequest, call: Call) -> OffsetFetchResponse:
    if call.version >= _FIRST_VERSION_WITH_SEVERAL:
        groups = {group.group_id: group for group in request.groups}.values()
        return OffsetFetchResponse(groups=[_group(group, call, request.require_stable) for group in groups])
    topics = None if request.topics is None else _topics_of(request)
    found = _group(OffsetFetchRequestGroup(group_id=request.group_id, topics=topics), call, request.require_stable)
    if found.error_code:
        return refuse(request, BrokerError(ErrorCode(found.error_code)))
    return OffsetFetchResponse(topics=[_as_single(topic) for topic in found.topics])


def refuse(request: OffsetFetchRequest, error: BrokerError) -> OffsetFetchResponse:
    return OffsetFetchResponse(
        error_code=error.code,
        topics=[_as_single(_failed(topic, error.code)) for topic in _topics_of(request)],
        groups=[OffsetFetchResponseGroup(group_id=each.group_id, error_code=error.code) for each in request.groups],
    )


def _topics_of(request: OffsetFetchRequest) -> list[OffsetFetchRequestTopics]:
    """Of one group, as versions up to 7 ask, in the words of the later ones."""
    return [
        OffsetFetchRequestTopics(name=topic.name, partition_indexes=topic.partition_indexes)
        for topic in request.topics or ()
    ]


def _group(asked: OffsetFetchRequestGroup, call: Call, require_stable: bool) -> OffsetFetchResponseGroup:
    try:
        name = any_group_name(call, asked.group_id)
        shard = call.broker.groups.shard_of(name)
        code = call.broker.groups.check_fetch(name, asked.member_id, asked.member_epoch)
    except BrokerError as error:
        return OffsetFetchResponseGroup(group_id=asked.group_id, error_code=_refusal(error.code, call))
    if code is not ErrorCode.NONE:
        return OffsetFetchResponseGroup(group_id=asked.group_id, error_code=code)
    committed = shard.committed(name)
    topics = list(_everything(committed, call) if asked.topics is None else _asked(asked.topics, committed, call))
    if require_stable and shard.pending:
        for topic in topics:
            _hide_unstable(topic, name, shard.pending, call)
    return OffsetFetchResponseGroup(group_id=asked.group_id, topics=topics)


def _refusal(code: ErrorCode, call: Call) -> ErrorCode:
    """A broker that does not hear the controller may be the coordinator all the same. librdkafka never asks again for
    an offset about which it was told 16 (its issue 5586); with 14 it does, and a heartbeat, which is told 16, sends it
    elsewhere if need be.
    """
    is_unsure = code is ErrorCode.NOT_COORDINATOR and call.broker.is_self_fenced
    return ErrorCode.COORDINATOR_LOAD_IN_PROGRESS if is_unsure else code


def _hide_unstable(topic: OffsetFetchResponseTopics, group: str, pending: PendingOffsets, call: Call) -> None:
    """The offset may be about to move: the client asks again."""
    image = call.broker.image.topic_by_id(topic.topic_id)
    text = physical(from_wire(topic.name, call.tenant) if image is None else image.name)
    for row in topic.partitions:
        if not row.error_code and pending.is_pending(group, text, row.partition_index):
            row.error_code, row.committed_offset = ErrorCode.UNSTABLE_OFFSET_COMMIT, _NOTHING
            row.committed_leader_epoch, row.metadata = _NOTHING, ""


def _everything(committed: Committed, call: Call) -> Iterator[OffsetFetchResponseTopics]:
    by_topic: dict[str, list[int]] = {}
    for topic, index in sorted(committed):
        by_topic.setdefault(topic, []).append(index)
    for text, indexes in by_topic.items():
        image = call.broker.image.topic(parse_physical(text))
        if image is not None and is_visible(call, image):
            partitions = [_partition(committed, image, index) for index in indexes]
            kept = [each for each in partitions if each.committed_offset != _NOTHING]
            if kept:
                yield OffsetFetchResponseTopics(name=wire_name(call, image), topic_id=image.id, partitions=kept)


def _asked(
    topics: Iterable[OffsetFetchRequestTopics], committed: Committed, call: Call
) -> Iterator[OffsetFetchResponseTopics]:
    for topic in _once(topics):
        image = _find(topic, call)
        if image is None and call.version >= _FIRST_VERSION_BY_TOPIC_ID:
            yield _failed(topic, ErrorCode.UNKNOWN_TOPIC_ID)
            continue
        yield OffsetFetchResponseTopics(
            name=topic.name,
            topic_id=topic.topic_id,
            partitions=[_of_name(committed, image, topic, index, call) for index in topic.partition_indexes],
        )


def _once(topics: Iterable[OffsetFetchRequestTopics]) -> Iterator[OffsetFetchRequestTopics]:
    asked = asked_once(((topic.name, topic.topic_id), topic.partition_indexes) for topic in topics)
    for (name, topic_id), indexes in asked.items():
        yield OffsetFetchRequestTopics(name=name, topic_id=topic_id, partition_indexes=indexes)


def _find(topic: OffsetFetchRequestTopics, call: Call) -> TopicImage | None:
    if call.version >= _FIRST_VERSION_BY_TOPIC_ID:
        return topic_by_id(call, topic.topic_id)
    return topic_by_name(call, topic.name)


def _of_name(
    committed: Committed, image: TopicImage | None, topic: OffsetFetchRequestTopics, index: int, call: Call
) -> OffsetFetchResponsePartitions:
    if image is not None:
        return _partition(committed, image, index)
    return _shown(committed.get((physical(from_wire(topic.name, call.tenant)), index)), NO_TOPIC_ID, index)


def _partition(committed: Committed, image: TopicImage, index: int) -> OffsetFetchResponsePartitions:
    return _shown(committed.get((physical(image.name), index)), image.id, index)


def _shown(value: OffsetValue | None, topic_id: UUID, index: int) -> OffsetFetchResponsePartitions:
    is_foreign = value is not None and value.topic_id not in (NO_TOPIC_ID, topic_id)
    if value is None or is_foreign:
        return OffsetFetchResponsePartitions(partition_index=index, committed_offset=_NOTHING)
    return OffsetFetchResponsePartitions(
        partition_index=index,
        committed_offset=value.offset,
        committed_leader_epoch=value.leader_epoch,
        metadata=value.metadata,
    )


def _failed(topic: OffsetFetchRequestTopics, code: ErrorCode) -> OffsetFetchResponseTopics:
    return OffsetFetchResponseTopics(
        name=topic.name,
        topic_id=topic.topic_id,
        partitions=[
            OffsetFetchResponsePartitions(partition_index=index, committed_offset=_NOTHING, error_code=code)
            for index in topic.partition_indexes
        ],
    )


def _as_single(topic: OffsetFetchResponseTopics) -> OffsetFetchResponseTopic:
    return OffsetFetchResponseTopic(
        name=topic.name,
        partitions=[
            OffsetFetchResponsePartition(
                partition_index=each.partition_index,
                committed_offset=each.committed_offset,
                committed_leader_epoch=each.committed_leader_epoch,
                metadata=each.metadata,
                error_code=each.error_code,
            )
            for each in topic.partitions
        ],
    )


API = Api(request=OffsetFetchRequest, scope=Scope.GROUPS, handle=handle, refuse=refuse)
