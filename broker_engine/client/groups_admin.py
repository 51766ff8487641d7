"""Admin calls on groups: who is there, who is in them, what they have committed, and changes of that.

Each call goes to the group's coordinator, which is found anew when it has moved. ListGroups is asked of every broker.
Left out: share and streams groups.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from broker_engine.client.connection import Connection
from broker_engine.client.controller_calls import ControllerCalls
from broker_engine.client.errors import KafkaError, UnsupportedVersion, error_for, known_code
from broker_engine.client.model import TopicPartition
from broker_engine.errors import ErrorCode
from broker_engine.wire.api import ApiSpec
from broker_engine.wire.messages import consumer_group_describe as consumer_api
from broker_engine.wire.messages import delete_groups as delete_api
from broker_engine.wire.messages import describe_groups as describe_api
from broker_engine.wire.messages import find_coordinator as find_api
from broker_engine.wire.messages import list_groups as list_api
from broker_engine.wire.messages import offset_commit as commit_api
from broker_engine.wire.messages import offset_delete as offset_delete_api
from broker_engine.wire.messages import offset_fetch as offset_fetch_api
from broker_engine.wire.schema import Message

R = TypeVar("R", bound=Message)
T = TypeVar("T")

GROUP_KEY = 0
FIRST_VERSION_FINDING_SEVERAL = 4
FIRST_VERSION_FETCHING_SEVERAL = 8
LAST_VERSION_BY_NAME = 9
"""OffsetCommit and OffsetFetch name topics up to here; later ones by id."""
NOTHING = -1
CONSUMER, CLASSIC = "consumer", "classic"
_MOVED = (
    ErrorCode.NOT_COORDINATOR,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
)

Outcome = KafkaError | None
"""None: done."""


@dataclass(frozen=True, slots=True)
class ListedGroup:
    name: str
    state: str
    type: str
    """`classic` or `consumer`; empty where the broker does not say."""
    protocol_type: str
    coordinator: int


@dataclass(frozen=True, slots=True)
class GroupMember:
    id: str
    instance_id: str | None
    client_id: str
    host: str
    assignment: bytes
    """A classic member's own bytes."""
    partitions: Mapping[str, tuple[int, ...]]
    """Of a consumer-protocol member, as the broker says them."""


@dataclass(frozen=True, slots=True)
class GroupDescription:
    name: str
    state: str
    type: str
    assignor: str
    epoch: int
    """-1 of a classic group: its generation is not told."""
    coordinator: int
    members: tuple[GroupMember, ...]


@dataclass(frozen=True, slots=True)
class CommittedOffset:
    offset: int
    leader_epoch: int
    metadata: str


class GroupsAdmin(ControllerCalls):
    async def list_groups(self) -> list[ListedGroup]:
        """Of every live broker, in the order of names."""
        await self._client.refresh_brokers()
        nodes = sorted(self._client.metadata.brokers)
        found = await asyncio.gather(*(self._listed_by(node) for node in nodes))
        return sorted((group for groups in found for group in groups), key=lambda group: group.name)

    async def _listed_by(self, node: int) -> list[ListedGroup]:
        async for _ in self._client.attempts():
            response = await self._client.ask(node, list_api.ListGroupsRequest(), list_api.ListGroupsResponse)
            if response.error_code not in _MOVED:
                break
        if response.error_code != ErrorCode.NONE:
            raise error_for(response.error_code, None, f"list the groups of broker {node}")
        return [
            ListedGroup(one.group_id, one.group_state, one.group_type, one.protocol_type, node)
            for one in response.groups
        ]

    async def find_coordinator(self, group: str) -> int:
        """The broker's id. KafkaError where there is none at the moment, after some tries."""
        code: int = ErrorCode.COORDINATOR_NOT_AVAILABLE
        async for _ in self._client.attempts():
            connection = await self._client.links.any_connection(self._client.metadata.brokers.values())
            version = connection.version_of(find_api.API)
            request = _find_coordinator(group, has_several=version >= FIRST_VERSION_FINDING_SEVERAL)
            response = await connection.ask(request, find_api.FindCoordinatorResponse, version=version)
            code, node = _found(response)
            if code == ErrorCode.NONE:
                return node
            if code not in _MOVED:
                break
        raise error_for(code, None, f"coordinator of group {group!r}")

    async def describe_group(self, group: str) -> GroupDescription:
        """GROUP_ID_NOT_FOUND where it is not there. Asked by both protocols' own calls, the newer one first."""

        async def ask(connection: Connection, node: int) -> GroupDescription:
            found = await _describe_consumer(connection, group, node) if _has(connection, consumer_api.API) else None
            return found or await _describe_classic(connection, group, node)

        return await self._with_coordinator(group, ask)

    async def group_offsets(
        self, group: str, partitions: Iterable[TopicPartition] | None = None
    ) -> dict[TopicPartition, CommittedOffset]:
        """What is committed: of these partitions, or of all. What has no commit is left out."""
        wanted = None if partitions is None else _by_topic(dict.fromkeys(partitions))

        async def ask(connection: Connection, node: int) -> dict[TopicPartition, CommittedOffset]:
            version = connection.version_of(offset_fetch_api.API, at_most=LAST_VERSION_BY_NAME)
            request = _offset_fetch(group, wanted, has_several=version >= FIRST_VERSION_FETCHING_SEVERAL)
            response = await connection.ask(request, offset_fetch_api.OffsetFetchResponse, version=version)
            return _committed(response, group)

        return await self._with_coordinator(group, ask)

    async def commit_group_offsets(
        self, group: str, offsets: Mapping[TopicPartition, int]
    ) -> dict[TopicPartition, Outcome]:
        """By nobody's generation: refused (UNKNOWN_MEMBER_ID) while the group has members."""
        topics = [
            commit_api.OffsetCommitRequestTopic(
                name=topic,
                partitions=[
                    commit_api.OffsetCommitRequestPartition(partition_index=index, committed_offset=offset)
                    for index, offset in parts.items()
                ],
            )
            for topic, parts in _by_topic(offsets).items()
        ]

        async def ask(connection: Connection, node: int) -> dict[TopicPartition, Outcome]:
            version = connection.version_of(commit_api.API, at_most=LAST_VERSION_BY_NAME)
            request = commit_api.OffsetCommitRequest(group_id=group, topics=topics)
            response = await connection.ask(request, commit_api.OffsetCommitResponse, version=version)
            outcomes = _outcomes((topic.name, topic.partitions) for topic in response.topics)
            _raise_if_moved(outcomes.values())
            return outcomes

        return await self._with_coordinator(group, ask)

    async def delete_group_offsets(
        self, group: str, partitions: Iterable[TopicPartition]
    ) -> dict[TopicPartition, Outcome]:
        """GROUP_SUBSCRIBED_TO_TOPIC where members still read the topic."""
        topics = [
            offset_delete_api.OffsetDeleteRequestTopic(
                name=topic,
                partitions=[offset_delete_api.OffsetDeleteRequestPartition(partition_index=index) for index in parts],
            )
            for topic, parts in _by_topic(dict.fromkeys(partitions)).items()
        ]

        async def ask(connection: Connection, node: int) -> dict[TopicPartition, Outcome]:
            request = offset_delete_api.OffsetDeleteRequest(group_id=group, topics=topics)
            response = await connection.ask(request, offset_delete_api.OffsetDeleteResponse)
            if response.error_code != ErrorCode.NONE:
                raise error_for(response.error_code, None, f"delete offsets of group {group!r}")
            return _outcomes((topic.name, topic.partitions) for topic in response.topics)

        return await self._with_coordinator(group, ask)

    async def delete_group(self, group: str) -> None:
        """NON_EMPTY_GROUP while it has members, GROUP_ID_NOT_FOUND where it is not there."""

        async def ask(connection: Connection, node: int) -> None:
            request = delete_api.DeleteGroupsRequest(groups_names=[group])
            response = await connection.ask(request, delete_api.DeleteGroupsResponse)
            for one in response.results:
                if one.error_code != ErrorCode.NONE:
                    raise error_for(one.error_code, None, f"delete group {group!r}")

        await self._with_coordinator(group, ask)

    async def _with_coordinator(self, group: str, ask: Callable[[Connection, int], Awaitable[T]]) -> T:
        """Asked again, of whoever it is then, when the coordinator has moved or is loading: nothing was done."""
        last: KafkaError | None = None
        async for _ in self._client.attempts():
            node = await self.find_coordinator(group)
            try:
                if node not in self._client.metadata.brokers:
                    await self._client.refresh_brokers()
                connection = await self._client.links.link(self._client.address_of(node)).get()
                return await ask(connection, node)
            except KafkaError as error:
                if error.code not in _MOVED:
                    raise
                last = error
        assert last is not None, "there is always one attempt"
        raise last


def _found(response: find_api.FindCoordinatorResponse) -> tuple[int, int]:
    one = response.coordinators[0] if response.coordinators else response
    return one.error_code, one.node_id


def _has(connection: Connection, api: ApiSpec) -> bool:
    try:
        connection.version_of(api)
    except UnsupportedVersion:
        return False
    return True


async def _describe_consumer(connection: Connection, group: str, node: int) -> GroupDescription | None:
    """None: it is not there, or of the classic protocol."""
    request = consumer_api.ConsumerGroupDescribeRequest(group_ids=[group])
    response = await connection.ask(request, consumer_api.ConsumerGroupDescribeResponse)
    one = response.groups[0]
    if one.error_code == ErrorCode.GROUP_ID_NOT_FOUND:
        return None
    if one.error_code != ErrorCode.NONE:
        raise error_for(one.error_code, one.error_message, f"describe group {group!r}")
    members = tuple(_consumer_member(member) for member in one.members)
    return GroupDescription(group, one.group_state, CONSUMER, one.assignor_name, one.group_epoch, node, members)


def _consumer_member(member: consumer_api.DescribedConsumerMember) -> GroupMember:
    partitions = {it.topic_name: tuple(it.partitions) for it in member.assignment.topic_partitions}
    return GroupMember(member.member_id, member.instance_id, member.client_id, member.client_host, b"", partitions)


async def _describe_classic(connection: Connection, group: str, node: int) -> GroupDescription:
    response = await connection.ask(
        describe_api.DescribeGroupsRequest(groups=[group]), describe_api.DescribeGroupsResponse
    )
    one = response.groups[0]
    if one.error_code != ErrorCode.NONE:
        raise error_for(one.error_code, one.error_message, f"describe group {group!r}")
    if one.group_state == "Dead":  # as versions before 6 say it
        raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"describe group {group!r}")
    members = tuple(
        GroupMember(it.member_id, it.group_instance_id, it.client_id, it.client_host, bytes(it.member_assignment), {})
        for it in one.members
    )
    return GroupDescription(group, one.group_state, CLASSIC, one.protocol_data, NOTHING, node, members)


def _find_coordinator(group: str, *, has_several: bool) -> find_api.FindCoordinatorRequest:
    if has_several:
        return find_api.FindCoordinatorRequest(key_type=GROUP_KEY, coordinator_keys=[group])
    return find_api.FindCoordinatorRequest(key=group, key_type=GROUP_KEY)


def _offset_fetch(
    group: str, wanted: Mapping[str, Mapping[int, object]] | None, *, has_several: bool
) -> offset_fetch_api.OffsetFetchRequest:
    if not has_several:
        single = offset_fetch_api.OffsetFetchRequestTopic
        topics = None if wanted is None else [single(name=it, partition_indexes=list(wanted[it])) for it in wanted]
        return offset_fetch_api.OffsetFetchRequest(group_id=group, topics=topics)
    one = offset_fetch_api.OffsetFetchRequestTopics
    asked = None if wanted is None else [one(name=it, partition_indexes=list(wanted[it])) for it in wanted]
    return offset_fetch_api.OffsetFetchRequest(
        groups=[offset_fetch_api.OffsetFetchRequestGroup(group_id=group, topics=asked)]
    )


def _committed(response: offset_fetch_api.OffsetFetchResponse, group: str) -> dict[TopicPartition, CommittedOffset]:
    one = response.groups[0] if response.groups else response
    if one.error_code != ErrorCode.NONE:
        raise error_for(one.error_code, None, f"offsets of group {group!r}")
    found: dict[TopicPartition, CommittedOffset] = {}
    for topic in one.topics:
        for part in topic.partitions:
            if part.error_code != ErrorCode.NONE:
                raise error_for(part.error_code, None, f"offset of group {group!r} in {topic.name}")
            if part.committed_offset != NOTHING:
                target = TopicPartition(topic.name, part.partition_index)
                found[target] = CommittedOffset(part.committed_offset, part.committed_leader_epoch, part.metadata or "")
    return found


def _outcomes(
    topics: Iterable[
        tuple[
            str,
            Sequence[commit_api.OffsetCommitResponsePartition | offset_delete_api.OffsetDeleteResponsePartition],
        ]
    ],
) -> dict[TopicPartition, Outcome]:
    return {
        TopicPartition(name, part.partition_index): None
        if part.error_code == ErrorCode.NONE
        else error_for(part.error_code, None, f"{name}-{part.partition_index}")
        for name, parts in topics
        for part in parts
    }


def _raise_if_moved(outcomes: Iterable[Outcome]) -> None:
    for outcome in outcomes:
        if outcome is not None and known_code(outcome.code) in _MOVED:
            raise outcome


def _by_topic(partitions: Mapping[TopicPartition, T]) -> dict[str, dict[int, T]]:
    topics: defaultdict[str, dict[int, T]] = defaultdict(dict)
    for (topic, index), value in partitions.items():
        topics[topic][index] = value
    return topics
