"""SyncGroup (key 14), versions 0-5. Answered when the leader has assigned and the group is stored."""

from __future__ import annotations

from broker_engine.errors import BrokerError
from broker_engine.groups.member import SyncAsk
from broker_engine.handlers.api import Api, Call, Scope
from broker_engine.handlers.groups import group_name
from broker_engine.wire.messages.sync_group import SyncGroupRequest, SyncGroupResponse

_FIRST_VERSION_WITH_PROTOCOL = 5


async def handle(request: SyncGroupRequest, call: Call) -> SyncGroupResponse:
    has_protocol = call.version >= _FIRST_VERSION_WITH_PROTOCOL
    ask = SyncAsk(
        member_id=request.member_id,
        instance_id=request.group_instance_id,
        generation=request.generation_id,
        protocol=(request.protocol_type, request.protocol_name) if has_protocol else None,
        assignments=tuple((each.member_id, bytes(each.assignment)) for each in request.assignments),
    )
    answer = await call.broker.groups.sync(group_name(call, request.group_id), ask)
    return SyncGroupResponse(
        error_code=answer.code,
        protocol_type=answer.protocol_type,
        protocol_name=answer.protocol,
        assignment=answer.assignment,
    )


def refuse(request: SyncGroupRequest, error: BrokerError) -> SyncGroupResponse:
    return SyncGroupResponse(error_code=error.code)


API = Api(request=SyncGroupRequest, scope=Scope.GROUPS, handle=handle, refuse=refuse)
