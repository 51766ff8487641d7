"""Rows about groups, made of what a coordinator's shard holds."""

from __future__ import annotations

from collections.abc import Callable
from itertools import islice
from typing import NamedTuple
from uuid import UUID

from broker_engine.groups.classic import ClassicGroup
from broker_engine.groups.consumer.group import ConsumerGroup
from broker_engine.groups.consumer.member import ConsumerMember
from broker_engine.groups.consumer_protocol import PROTOCOL_TYPE, read_assignment
from broker_engine.groups.member import Member
from broker_engine.groups.records import OffsetValue
from broker_engine.groups.shard import AnyGroup
from broker_engine.groups.states import GroupState
from broker_engine.groups.timeline import RebalanceEvent
from broker_engine.ids import NO_TOPIC_ID
from broker_engine.server.data_dir import id_text
from broker_engine.telemetry.schema import (
    EVENTS_TOLD_MAX,
    MEMBERS_TOLD_MAX,
    GroupMemberRow,
    GroupOffsetRow,
    GroupRow,
    RebalanceRow,
)

CLASSIC, CONSUMER = "classic", "consumer"
UNKNOWN = -1

TopicName = Callable[[UUID], str | None]
"""A topic as the group's own tenant names it; None where it is gone."""


class Coordinated(NamedTuple):
    """By whom a group is told of, and when."""

    partition: int
    """Of `__consumer_offsets`."""
    epoch: int
    now_ms: int
    wall_offset_ms: int
    """Makes a wall clock's time of a monotonic one."""


def group_row(group: AnyGroup | None, by: Coordinated, topic_name: TopicName) -> GroupRow:
    """None: a group that only has offsets."""
    if group is None:
        return _memberless_row(by)
    if isinstance(group, ConsumerGroup):
        return _consumer_row(group, by, topic_name)
    return GroupRow(
        at_ms=by.now_ms,
        coordinator_epoch=by.epoch,
        offsets_partition=by.partition,
        state=group.state.value,
        protocol=CLASSIC,
        protocol_type=group.protocol_type,
        generation=group.generation,
        assignor=group.protocol or "",
        leader=group.leader or "",
        state_since_ms=group.state_since_ms,
        member_count=len(group.members),
        members=[_classic_member(each, group) for each in islice(group.members.values(), MEMBERS_TOLD_MAX)],
        events=_events(group, by),
    )


def _consumer_row(group: ConsumerGroup, by: Coordinated, topic_name: TopicName) -> GroupRow:
    return GroupRow(
        at_ms=by.now_ms,
        coordinator_epoch=by.epoch,
        offsets_partition=by.partition,
        state=group.state.value,
        protocol=CONSUMER,
        protocol_type=group.protocol_type,
        generation=group.epoch,
        assignor=group.preferred_assignor(),
        leader="",
        state_since_ms=0,
        member_count=len(group.members),
        members=[_consumer_member(each, topic_name) for each in islice(group.members.values(), MEMBERS_TOLD_MAX)],
        events=_events(group, by),
    )


def _events(group: AnyGroup, by: Coordinated) -> list[RebalanceRow]:
    return [_event(each, by.wall_offset_ms) for each in list(group.timeline.events)[-EVENTS_TOLD_MAX:]]


def _consumer_member(member: ConsumerMember, topic_name: TopicName) -> GroupMemberRow:
    named = ((topic_name(topic_id), indexes) for topic_id, indexes in member.standing.assigned.items())
    return GroupMemberRow(
        id=member.id,
        client_id=member.subscription.client_id,
        host=member.subscription.client_host,
        instance_id=member.instance_id or "",
        partitions={name: sorted(indexes) for name, indexes in named if name is not None},
    )


def _memberless_row(by: Coordinated) -> GroupRow:
    return GroupRow(
        at_ms=by.now_ms,
        coordinator_epoch=by.epoch,
        offsets_partition=by.partition,
        state=GroupState.EMPTY.value,
        protocol=CLASSIC,
        protocol_type="",
        generation=0,
        assignor="",
        leader="",
        state_since_ms=0,
        member_count=0,
        members=[],
        events=[],
    )


def _classic_member(member: Member, group: ClassicGroup) -> GroupMemberRow:
    return GroupMemberRow(
        id=member.id,
        client_id=member.client_id,
        host=member.client_host,
        instance_id=member.instance_id or "",
        partitions=_assigned(member, group),
    )


def _assigned(member: Member, group: ClassicGroup) -> dict[str, list[int]]:
    """The clients' own bytes: what is not of Kafka's ConsumerProtocol names no partitions."""
    if group.state is not GroupState.STABLE or group.protocol_type != PROTOCOL_TYPE:
        return {}
    assigned = read_assignment(member.assignment) or {}
    return {topic: list(indexes) for topic, indexes in assigned.items()}


def _event(event: RebalanceEvent, wall_offset_ms: int) -> RebalanceRow:
    return RebalanceRow(
        at_ms=event.at_ms + wall_offset_ms,
        kind=event.kind.value,
        member=event.member_id,
        client_id=event.client_id,
        generation=event.generation,
        duration_ms=_number(event.duration_ms),
        moved_count=_number(event.partitions_moved),
        topics=list(event.news.topics),
        dropped_topics=list(event.news.dropped_topics),
        unnamed_count=event.news.unnamed_count,
        partitions_before=_number(event.news.partitions_before),
        partitions_after=_number(event.news.partitions_after),
    )


def _number(value: int | None) -> int:
    return UNKNOWN if value is None else value


def offset_row(
    value: OffsetValue, *, coordinator_epoch: int, commit_count: int, unread_ms: int, now_ms: int
) -> GroupOffsetRow:
    return GroupOffsetRow(
        at_ms=now_ms,
        coordinator_epoch=coordinator_epoch,
        topic_id="" if value.topic_id == NO_TOPIC_ID else id_text(value.topic_id),
        offset=value.offset,
        commit_ms=value.commit_timestamp,
        metadata=value.metadata,
        commit_count=commit_count,
        unread_ms=unread_ms,
    )
