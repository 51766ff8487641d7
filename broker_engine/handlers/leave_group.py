"""LeaveGroup (key 13), versions 0-5. From version 3 on for several members, each with a code of its own."""

from __future__ import annotations

from broker_engine.errors import BrokerError
from broker_engine.handlers.api import Api, Call, Scope
from broker_engine.handlers.groups import group_name
from broker_engine.wire.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse, MemberResponse

_FIRST_VERSION_WITH_SEVERAL = 3


async def handle(request: LeaveGroupRequest, call: Call) -> LeaveGroupResponse:
    name = group_name(call, request.group_id)
    if call.version < _FIRST_VERSION_WITH_SEVERAL:
        (code,) = await call.broker.groups.leave(name, [(request.member_id, None)])
        return LeaveGroupResponse(error_code=code)
    codes = await call.broker.groups.leave(name, [(each.member_id, each.group_instance_id) for each in request.members])
    return LeaveGroupResponse(
        members=[
            MemberResponse(member_id=each.member_id, group_instance_id=each.group_instance_id, error_code=code)
            for each, code in zip(request.members, codes, strict=True)
        ]
    )


def refuse(request: LeaveGroupRequest, error: BrokerError) -> LeaveGroupResponse:
    return LeaveGroupResponse(error_code=error.code)


API = Api(request=LeaveGroupRequest, scope=Scope.GROUPS, handle=handle, refuse=refuse)
