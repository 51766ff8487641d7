"""JoinGroup (key 11), versions 0-9. Answered when the new generation begins. More protocols than anybody speaks are
refused (42).
"""

from __future__ import annotations

from broker_engine.errors import BrokerError, ErrorCode
from broker_engine.groups.effects import JoinAnswer
from broker_engine.groups.member import JoinAsk
from broker_engine.handlers.api import Api, Call, Scope
from broker_engine.handlers.groups import client_host, group_name
from broker_engine.wire.messages.join_group import JoinGroupRequest, JoinGroupResponse, JoinGroupResponseMember

_FIRST_VERSION_WITH_REBALANCE_TIMEOUT = 1
_FIRST_VERSION_WITH_KNOWN_ID = 4
_FIRST_VERSION_WITH_NULL_PROTOCOL = 7
_FIRST_VERSION_WITH_SKIP = 9
PROTOCOLS_MAX = 64
"""Of one member; clients name one to three. All of them are kept, and weighed whenever a generation begins."""


async def handle(request: JoinGroupRequest, call: Call) -> JoinGroupResponse:
    config = call.broker.config
    name = group_name(call, request.group_id)
    if not config.group_min_session_timeout_ms <= request.session_timeout_ms <= config.group_max_session_timeout_ms:
        raise BrokerError(ErrorCode.INVALID_SESSION_TIMEOUT)
    if len(request.protocols) > PROTOCOLS_MAX:
        raise BrokerError(ErrorCode.INVALID_REQUEST, f"a member names at most {PROTOCOLS_MAX} protocols")
    return _answer(await call.broker.groups.join(name, _ask(request, call)), call.version)


def refuse(request: JoinGroupRequest, error: BrokerError) -> JoinGroupResponse:
    return JoinGroupResponse(error_code=error.code, member_id=request.member_id)


def _ask(request: JoinGroupRequest, call: Call) -> JoinAsk:
    has_timeout = call.version >= _FIRST_VERSION_WITH_REBALANCE_TIMEOUT
    return JoinAsk(
        member_id=request.member_id,
        instance_id=request.group_instance_id,
        client_id=call.client_id or "",
        client_host=client_host(call),
        session_timeout_ms=request.session_timeout_ms,
        rebalance_timeout_ms=request.rebalance_timeout_ms if has_timeout else request.session_timeout_ms,
        protocol_type=request.protocol_type,
        protocols=tuple((protocol.name, bytes(protocol.metadata)) for protocol in request.protocols),
        needs_known_id=call.version >= _FIRST_VERSION_WITH_KNOWN_ID,
        can_skip_assignment=call.version >= _FIRST_VERSION_WITH_SKIP,
    )


def _answer(answer: JoinAnswer, version: int) -> JoinGroupResponse:
    no_protocol = None if version >= _FIRST_VERSION_WITH_NULL_PROTOCOL else ""
    return JoinGroupResponse(
        error_code=answer.code,
        generation_id=answer.generation,
        protocol_type=answer.protocol_type,
        protocol_name=no_protocol if answer.protocol is None else answer.protocol,
        leader=answer.leader,
        skip_assignment=answer.skip_assignment,
        member_id=answer.member_id,
        members=[
            JoinGroupResponseMember(member_id=member_id, group_instance_id=instance_id, metadata=metadata)
            for member_id, instance_id, metadata in answer.members
        ],
    )


API = Api(request=JoinGroupRequest, scope=Scope.GROUPS, handle=handle, refuse=refuse)
