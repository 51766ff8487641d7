"""Heartbeat (key 12), versions 0-4."""

from __future__ import annotations

from broker_engine.errors import BrokerError
from broker_engine.handlers.api import Api, Call, Scope
from broker_engine.handlers.groups import group_name
from broker_engine.wire.messages.heartbeat import HeartbeatRequest, HeartbeatResponse


def handle(request: HeartbeatRequest, call: Call) -> HeartbeatResponse:
    name = group_name(call, request.group_id)
    code = call.broker.groups.heartbeat(name, request.member_id, request.group_instance_id, request.generation_id)
    return HeartbeatResponse(error_code=code)


def refuse(request: HeartbeatRequest, error: BrokerError) -> HeartbeatResponse:
    return HeartbeatResponse(error_code=error.code)


API = Api(request=HeartbeatRequest, scope=Scope.GROUPS, handle=handle, refuse=refuse)
