"""DescribeGroups (key 15), versions 0-6, of classic groups. One that is not there, or of the consumer protocol, is
Dead, from version 6 on with 69 and why. One that is named twice is answered once.
"""

from __future__ import annotations

from broker_engine.errors import BrokerError, ErrorCode
from broker_engine.groups.classic import ClassicGroup
from broker_engine.groups.member import Member
from broker_engine.groups.states import GroupState
from broker_engine.handlers.api import Api, Call, Scope
from broker_engine.handlers.groups import group_name
from broker_engine.wire.messages.describe_groups import (
    DescribedGroup,
    DescribedGroupMember,
    DescribeGroupsRequest,
    DescribeGroupsResponse,
)

_FIRST_VERSION_WITH_NOT_FOUND = 6


def handle(request: DescribeGroupsRequest, call: Call) -> DescribeGroupsResponse:
    return DescribeGroupsResponse(groups=[_describe(text, call) for text in dict.fromkeys(request.groups)])


def refuse(request: DescribeGroupsRequest, error: BrokerError) -> DescribeGroupsResponse:
    return DescribeGroupsResponse(
        groups=[DescribedGroup(group_id=text, error_code=error.code) for text in request.groups]
    )


def _describe(text: str, call: Call) -> DescribedGroup:
    try:
        name = group_name(call, text)
        shard = call.broker.groups.shard_of(name)
    except BrokerError as error:
        return DescribedGroup(group_id=text, error_code=error.code, error_message=error.message or None)
    group = shard.group(name)
    if isinstance(group, ClassicGroup):
        return _described(text, group)
    if group is not None:
        return _absent(text, f"Group {text} is not a classic group.", call.version)
    if shard.committed(name):
        return DescribedGroup(group_id=text, group_state=GroupState.EMPTY.value)
    return _absent(text, f"Group {text} not found.", call.version)


def _absent(text: str, reason: str, version: int) -> DescribedGroup:
    group = DescribedGroup(group_id=text, group_state=GroupState.DEAD.value)
    if version >= _FIRST_VERSION_WITH_NOT_FOUND:
        group.error_code, group.error_message = ErrorCode.GROUP_ID_NOT_FOUND, reason
    return group


def _described(text: str, group: ClassicGroup) -> DescribedGroup:
    is_settled = group.state is GroupState.STABLE
    protocol = group.protocol or ""
    return DescribedGroup(
        group_id=text,
        group_state=group.state.value,
        protocol_type=group.protocol_type,
        protocol_data=protocol if is_settled else "",
        members=[_member(member, protocol, is_settled=is_settled) for member in group.members.values()],
    )


def _member(member: Member, protocol: str, *, is_settled: bool) -> DescribedGroupMember:
    return DescribedGroupMember(
        member_id=member.id,
        group_instance_id=member.instance_id,
        client_id=member.client_id,
        client_host=member.client_host,
        member_metadata=member.metadata_of(protocol) if is_settled else b"",
        member_assignment=member.assignment if is_settled else b"",
    )


API = Api(request=DescribeGroupsRequest, scope=Scope.GROUPS, handle=handle, refuse=refuse)
