"""ConsumerGroupHeartbeat (key 68), versions 0-1: join, stay and leave (KIP-848). Answered at once where nothing is new;
else when what changed is acknowledged. From version 1 on the client makes its member id.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Awaitable, Iterable
from uuid import UUID

from broker_engine.errors import BrokerError, ErrorCode
from broker_engine.groups.consumer.heartbeat import check_ask
from broker_engine.groups.consumer.member import JOINING_EPOCH, HeartbeatAnswer, HeartbeatAsk
from broker_engine.groups.consumer.partitions import Partitions
from broker_engine.handlers.api import Api, Call, Scope
from broker_engine.handlers.groups import any_group_name, client_host
from broker_engine.names import from_wire, physical
from broker_engine.wire.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    HeartbeatAssignment,
    HeartbeatTopicPartitions,
)

_FIRST_VERSION_WITH_OWN_ID = 1


def handle(
    request: ConsumerGroupHeartbeatRequest, call: Call
) -> ConsumerGroupHeartbeatResponse | Awaitable[ConsumerGroupHeartbeatResponse]:
    if not request.group_id:
        raise BrokerError(ErrorCode.INVALID_REQUEST, "GroupId can't be empty.")
    name = any_group_name(call, request.group_id)
    ask = _ask(request, call)
    quick = call.broker.groups.quick_heartbeat(name, ask) if ask.epoch > JOINING_EPOCH else None
    return _handle_slowly(name, ask, call) if quick is None else _answer(quick)


async def _handle_slowly(name: str, ask: HeartbeatAsk, call: Call) -> ConsumerGroupHeartbeatResponse:
    groups = call.broker.groups
    assignors = call.broker.config.group_consumer_assignors
    check_ask(ask, assignors, needs_member_id=call.version >= _FIRST_VERSION_WITH_OWN_ID)
    if not ask.member_id:
        ask = dataclasses.replace(ask, member_id=groups.new_member_id())
    return _answer(await groups.consumer_heartbeat(name, ask))


def refuse(request: ConsumerGroupHeartbeatRequest, error: BrokerError) -> ConsumerGroupHeartbeatResponse:
    return ConsumerGroupHeartbeatResponse(error_code=error.code, error_message=error.message or None)


def _ask(request: ConsumerGroupHeartbeatRequest, call: Call) -> HeartbeatAsk:
    names, owned = request.subscribed_topic_names, request.topic_partitions
    return HeartbeatAsk(
        member_id=request.member_id,
        epoch=request.member_epoch,
        instance_id=request.instance_id,
        rack_id=request.rack_id,
        rebalance_timeout_ms=request.rebalance_timeout_ms,
        topic_names=None if names is None else frozenset(physical(from_wire(each, call.tenant)) for each in names),
        topic_regex=request.subscribed_topic_regex,
        server_assignor=request.server_assignor,
        owned=None if owned is None else _owned(owned),
        client_id=call.client_id or "",
        client_host=client_host(call),
    )


def _owned(topics: Iterable[HeartbeatTopicPartitions]) -> Partitions:
    found: dict[UUID, frozenset[int]] = {}
    for topic in topics:
        if topic.partitions:
            found[topic.topic_id] = found.get(topic.topic_id, frozenset()).union(topic.partitions)
    return found


def _answer(answer: HeartbeatAnswer) -> ConsumerGroupHeartbeatResponse:
    return ConsumerGroupHeartbeatResponse(
        member_id=answer.member_id,
        member_epoch=answer.epoch,
        heartbeat_interval_ms=answer.interval_ms,
        assignment=None if answer.assignment is None else _assignment(answer.assignment),
    )


def _assignment(partitions: Partitions) -> HeartbeatAssignment:
    return HeartbeatAssignment(
        topic_partitions=[
            HeartbeatTopicPartitions(topic_id=topic_id, partitions=sorted(partitions[topic_id]))
            for topic_id in sorted(partitions)
        ]
    )


API = Api(request=ConsumerGroupHeartbeatRequest, scope=Scope.GROUPS, handle=handle, refuse=refuse)
