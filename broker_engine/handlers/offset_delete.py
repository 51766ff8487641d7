"""OffsetDelete (key 47), version 0: offsets of a group that has no members; with members their topics are refused
(86), whatever they subscribe to: their subscriptions are the clients' own bytes, which we do not read.
"""

from __future__ import annotations

from broker_engine.errors import BrokerError, ErrorCode
from broker_engine.handlers.api import Api, Call, Scope
from broker_engine.handlers.groups import group_name
from broker_engine.names import from_wire, physical
from broker_engine.wire.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestTopic,
    OffsetDeleteResponse,
    OffsetDeleteResponsePartition,
    OffsetDeleteResponseTopic,
)


async def handle(request: OffsetDeleteRequest, call: Call) -> OffsetDeleteResponse:
    name = group_name(call, request.group_id)
    groups = call.broker.groups
    shard = groups.shard_of(name)
    group = shard.group(name)
    if group is None and not shard.committed(name):
        return OffsetDeleteResponse(error_code=ErrorCode.GROUP_ID_NOT_FOUND)
    if group is not None and group.members:
        return _answer(request, ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC)
    places = [
        (physical(from_wire(topic.name, call.tenant)), each.partition_index)
        for topic in request.topics
        for each in topic.partitions
    ]
    return _answer(request, await groups.delete_offsets(name, places))


def refuse(request: OffsetDeleteRequest, error: BrokerError) -> OffsetDeleteResponse:
    return OffsetDeleteResponse(error_code=error.code)


def _answer(request: OffsetDeleteRequest, code: ErrorCode) -> OffsetDeleteResponse:
    return OffsetDeleteResponse(topics=[_topic(topic, code) for topic in request.topics])


def _topic(topic: OffsetDeleteRequestTopic, code: ErrorCode) -> OffsetDeleteResponseTopic:
    return OffsetDeleteResponseTopic(
        name=topic.name,
        partitions=[
            OffsetDeleteResponsePartition(partition_index=each.partition_index, error_code=code)
            for each in topic.partitions
        ],
    )


API = Api(request=OffsetDeleteRequest, scope=Scope.GROUPS, handle=handle, refuse=refuse)
