"""OffsetDelete (key 47), version 0. Topics that a living group reads are refused (86), all topics where its members'
own bytes do not tell what they read.
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
    names = {topic.name: physical(from_wire(topic.name, call.tenant)) for topic in request.topics}
    read = groups.subscribed_topics(group) if group is not None and group.members else frozenset[str]()
    kept = {text for text in names.values() if read is None or text in read}
    places = [
        (names[topic.name], each.partition_index)
        for topic in request.topics
        for each in topic.partitions
        if names[topic.name] not in kept
    ]
    code = await groups.delete_offsets(name, dict.fromkeys(places))
    codes = {each: ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC if names[each] in kept else code for each in names}
    return OffsetDeleteResponse(topics=[_topic(topic, codes[topic.name]) for topic in request.topics])


def refuse(request: OffsetDeleteRequest, error: BrokerError) -> OffsetDeleteResponse:
    return OffsetDeleteResponse(error_code=error.code)


def _topic(topic: OffsetDeleteRequestTopic, code: ErrorCode) -> OffsetDeleteResponseTopic:
    return OffsetDeleteResponseTopic(
        name=topic.name,
        partitions=[
            OffsetDeleteResponsePartition(partition_index=each.partition_index, error_code=code)
            for each in topic.partitions
        ],
    )


API = Api(request=OffsetDeleteRequest, scope=Scope.GROUPS, handle=handle, refuse=refuse)
