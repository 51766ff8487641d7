"""Offsets of a group: committed by a member, or by anybody while the group has none, and read back."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping

from broker_engine.client.coordinator import Coordinator
from broker_engine.client.errors import error_for
from broker_engine.client.group_protocol import GroupIdentity
from broker_engine.client.model import TopicPartition
from broker_engine.errors import ErrorCode
from broker_engine.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)
from broker_engine.wire.messages.offset_fetch import API as OFFSET_FETCH
from broker_engine.wire.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
)

_VERSION_BY_NAME_MAX = 9
_FIRST_VERSION_WITH_SEVERAL = 8
_RETRIED = (ErrorCode.UNSTABLE_OFFSET_COMMIT,)


async def commit_offsets(
    coordinator: Coordinator, identity: GroupIdentity, offsets: Mapping[TopicPartition, int]
) -> None:
    """All of them, or the first error. After an error some may be committed: each partition has its own answer."""
    if not offsets:
        return
    request = OffsetCommitRequest(
        group_id=identity.group_id,
        generation_id_or_member_epoch=identity.generation,
        member_id=identity.member_id,
        group_instance_id=identity.instance_id,
        topics=[
            OffsetCommitRequestTopic(
                name=name,
                partitions=[
                    OffsetCommitRequestPartition(
                        partition_index=index, committed_offset=offsets[TopicPartition(name, index)]
                    )
                    for index in indexes
                ],
            )
            for name, indexes in _by_topic(offsets)
        ],
    )
    response = await coordinator.ask(request, OffsetCommitResponse, _commit_codes, at_most=_VERSION_BY_NAME_MAX)
    for code in _commit_codes(response):
        if code != ErrorCode.NONE:
            raise error_for(code, None, f"commit offsets of group {identity.group_id!r}")


async def fetch_offsets(
    coordinator: Coordinator, group_id: str, targets: Iterable[TopicPartition]
) -> dict[TopicPartition, int]:
    """Stable ones: where a transaction may still move an offset, its end is waited for."""
    wanted = _by_topic(targets)
    version = (await coordinator.connection()).version_of(OFFSET_FETCH, at_most=_VERSION_BY_NAME_MAX)
    request = _fetch_request(group_id, wanted, is_old=version < _FIRST_VERSION_WITH_SEVERAL)
    response = await coordinator.ask(
        request, OffsetFetchResponse, _fetch_codes, at_most=_VERSION_BY_NAME_MAX, passing=_RETRIED
    )
    for code in _fetch_codes(response):
        if code != ErrorCode.NONE:
            raise error_for(code, None, f"offsets of group {group_id!r}")
    return dict(_found(response))


def _fetch_request(group_id: str, wanted: list[tuple[str, list[int]]], *, is_old: bool) -> OffsetFetchRequest:
    if is_old:
        topics = [OffsetFetchRequestTopic(name=name, partition_indexes=indexes) for name, indexes in wanted]
        return OffsetFetchRequest(group_id=group_id, topics=topics, require_stable=True)
    named = [OffsetFetchRequestTopics(name=name, partition_indexes=indexes) for name, indexes in wanted]
    group = OffsetFetchRequestGroup(group_id=group_id, topics=named)
    return OffsetFetchRequest(groups=[group], require_stable=True)


def _found(response: OffsetFetchResponse) -> Iterable[tuple[TopicPartition, int]]:
    topics = response.groups[0].topics if response.groups else response.topics
    for topic in topics:
        for part in topic.partitions:
            if part.committed_offset >= 0:
                yield TopicPartition(topic.name, part.partition_index), part.committed_offset


def _commit_codes(response: OffsetCommitResponse) -> Iterable[int]:
    return [part.error_code for topic in response.topics for part in topic.partitions]


def _fetch_codes(response: OffsetFetchResponse) -> Iterable[int]:
    yield response.error_code
    for group in response.groups:
        yield group.error_code
    topics = response.groups[0].topics if response.groups else response.topics
    for topic in topics:
        for part in topic.partitions:
            yield part.error_code


def _by_topic(targets: Iterable[TopicPartition]) -> list[tuple[str, list[int]]]:
    grouped: defaultdict[str, list[int]] = defaultdict(list)
    for target in targets:
        grouped[target.topic].append(target.partition)
    return list(grouped.items())
