"""DeleteGroups (key 42), versions 0-2: a group without members goes, with its offsets."""

from __future__ import annotations

from broker_engine.errors import BrokerError, ErrorCode
from broker_engine.handlers.api import Api, Call, Scope
from broker_engine.handlers.groups import group_name
from broker_engine.wire.messages.delete_groups import DeletableGroupResult, DeleteGroupsRequest, DeleteGroupsResponse


async def handle(request: DeleteGroupsRequest, call: Call) -> DeleteGroupsResponse:
    names = dict.fromkeys(request.groups_names)
    return DeleteGroupsResponse(
        results=[DeletableGroupResult(group_id=text, error_code=await _delete(text, call)) for text in names]
    )


def refuse(request: DeleteGroupsRequest, error: BrokerError) -> DeleteGroupsResponse:
    return DeleteGroupsResponse(
        results=[DeletableGroupResult(group_id=text, error_code=error.code) for text in request.groups_names]
    )


async def _delete(text: str, call: Call) -> ErrorCode:
    try:
        return await call.broker.groups.delete_group(group_name(call, text))
    except BrokerError as error:
        return error.code


API = Api(request=DeleteGroupsRequest, scope=Scope.GROUPS, handle=handle, refuse=refuse)
