"""ConsumerGroupDescribe (key 69), versions 0-1. A classic group, and one that is not there, is 69 and why. Topics that
were deleted are left out of assignments. A group that is named twice is answered once.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from uuid import UUID

from broker_engine.errors import BrokerError, ErrorCode
from broker_engine.groups.consumer.group import ConsumerGroup
from broker_engine.groups.consumer.member import ConsumerMember
from broker_engine.handlers.api import Api, Call, Scope
from broker_engine.handlers.groups import group_name
from broker_engine.handlers.topics import topic_by_id, wire_name
from broker_engine.names import ROOT, from_wire, to_wire
from broker_engine.wire.messages.consumer_group_describe import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
    DescribedAssignment,
    DescribedConsumerGroup,
    DescribedConsumerMember,
    DescribedTopicPartitions,
)

_CLASSIC, _CONSUMER = 0, 1


def handle(request: ConsumerGroupDescribeRequest, call: Call) -> ConsumerGroupDescribeResponse:
    return ConsumerGroupDescribeResponse(groups=[_describe(text, call) for text in dict.fromkeys(request.group_ids)])


def refuse(request: ConsumerGroupDescribeRequest, error: BrokerError) -> ConsumerGroupDescribeResponse:
    return ConsumerGroupDescribeResponse(groups=[_refused(text, error) for text in request.group_ids])


def _refused(text: str, error: BrokerError) -> DescribedConsumerGroup:
    return DescribedConsumerGroup(group_id=text, error_code=error.code, error_message=error.message or None)


def _describe(text: str, call: Call) -> DescribedConsumerGroup:
    try:
        name = group_name(call, text)
        group = call.broker.groups.shard_of(name).group(name)
    except BrokerError as error:
        return _refused(text, error)
    if isinstance(group, ConsumerGroup):
        return _described(text, group, call)
    what = "not found" if group is None else "is not a consumer group"
    return _refused(text, BrokerError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {text} {what}."))


def _described(text: str, group: ConsumerGroup, call: Call) -> DescribedConsumerGroup:
    return DescribedConsumerGroup(
        group_id=text,
        group_state=group.state.value,
        group_epoch=group.epoch,
        assignment_epoch=group.assignment_epoch,
        assignor_name=group.preferred_assignor(),
        members=[_member(group, member, call) for member in group.members.values()],
    )


def _member(group: ConsumerGroup, member: ConsumerMember, call: Call) -> DescribedConsumerMember:
    said = member.subscription
    return DescribedConsumerMember(
        member_id=member.id,
        instance_id=said.instance_id,
        rack_id=said.rack_id,
        member_epoch=member.epoch,
        client_id=said.client_id,
        client_host=said.client_host,
        subscribed_topic_names=sorted(to_wire(from_wire(each, ROOT), call.tenant) for each in said.topic_names),
        subscribed_topic_regex=said.topic_regex or "",
        assignment=_assignment(member.standing.assigned, call),
        target_assignment=_assignment(group.target_of(member.id), call),
        member_type=_CLASSIC if member.is_classic else _CONSUMER,
    )


def _assignment(partitions: Mapping[UUID, Iterable[int]], call: Call) -> DescribedAssignment:
    found = [(topic_by_id(call, topic_id), indexes) for topic_id, indexes in partitions.items()]
    rows = [
        DescribedTopicPartitions(topic_id=topic.id, topic_name=wire_name(call, topic), partitions=sorted(indexes))
        for topic, indexes in found
        if topic is not None
    ]
    return DescribedAssignment(topic_partitions=sorted(rows, key=lambda row: row.topic_name))


API = Api(request=ConsumerGroupDescribeRequest, scope=Scope.GROUPS, handle=handle, refuse=refuse)
