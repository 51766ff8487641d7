"""A classic group as a record, and back."""

from __future__ import annotations

from collections.abc import Mapping

from broker_engine.groups.classic import ClassicGroup
from broker_engine.groups.member import Member
from broker_engine.groups.records import GroupMemberValue, GroupValue
from broker_engine.groups.states import GroupState


def group_value(group: ClassicGroup) -> GroupValue:
    """With the leader's newest assignments, before the members know of them: durable first."""
    return GroupValue(
        protocol_type=group.protocol_type,
        generation=group.generation,
        protocol=group.protocol,
        leader=group.leader,
        current_state_timestamp=group.state_since_ms,
        members=[_member_value(member, group.protocol or "", group.assigned) for member in group.members.values()],
    )


def restore_group(group: ClassicGroup, value: GroupValue, now_ms: int) -> None:
    members = [_member(each, value.protocol or "", now_ms) for each in value.members]
    group.generation, group.protocol = value.generation, value.protocol
    group.state_since_ms = value.current_state_timestamp
    group.roster.replace_all(members, value.leader, value.protocol_type)
    group.state = GroupState.STABLE if members else GroupState.EMPTY


def _member_value(member: Member, protocol: str, assigned: Mapping[str, bytes] | None) -> GroupMemberValue:
    return GroupMemberValue(
        member_id=member.id,
        group_instance_id=member.instance_id,
        client_id=member.client_id,
        client_host=member.client_host,
        rebalance_timeout=member.rebalance_timeout_ms,
        session_timeout=member.session_timeout_ms,
        subscription=member.metadata_of(protocol),
        assignment=member.assignment if assigned is None else assigned.get(member.id, b""),
    )


def _member(value: GroupMemberValue, protocol: str, now_ms: int) -> Member:
    return Member(
        id=value.member_id,
        instance_id=value.group_instance_id,
        client_id=value.client_id,
        client_host=value.client_host,
        session_timeout_ms=value.session_timeout,
        rebalance_timeout_ms=value.rebalance_timeout if value.rebalance_timeout >= 0 else value.session_timeout,
        protocols=((protocol, bytes(value.subscription)),),
        assignment=bytes(value.assignment),
        seen_ms=now_ms,
        has_synced=True,
    )
