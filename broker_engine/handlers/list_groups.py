"""ListGroups (key 16), versions 0-5: what this broker coordinates, of the caller's own. Filters take any case."""

from __future__ import annotations

from collections.abc import Iterator

from broker_engine.errors import BrokerError
from broker_engine.groups.consumer.group import ConsumerGroup
from broker_engine.groups.shard import GroupShard
from broker_engine.groups.states import GroupState
from broker_engine.handlers.api import Api, Call, Scope
from broker_engine.handlers.groups import visible_name
from broker_engine.wire.messages.list_groups import ListedGroup, ListGroupsRequest, ListGroupsResponse

_CLASSIC, _CONSUMER = "classic", "consumer"


def handle(request: ListGroupsRequest, call: Call) -> ListGroupsResponse:
    states = {state.lower() for state in request.states_filter}
    types = {kind.lower() for kind in request.types_filter}
    listed = [
        group
        for shard in call.broker.groups.shards()
        for group in _listed(shard, call)
        if (not states or group.group_state.lower() in states) and (not types or group.group_type in types)
    ]
    return ListGroupsResponse(groups=listed)


def refuse(request: ListGroupsRequest, error: BrokerError) -> ListGroupsResponse:
    return ListGroupsResponse(error_code=error.code)


def _listed(shard: GroupShard, call: Call) -> Iterator[ListedGroup]:
    names = shard.names() if call.principal.is_root else shard.names_of(call.tenant)
    for text in names:
        name = visible_name(call, text)
        if name is None:
            continue
        group = shard.group(text)
        state = GroupState.EMPTY if group is None else group.state
        yield ListedGroup(
            group_id=name,
            protocol_type="" if group is None else group.protocol_type,
            group_state=state.value,
            group_type=_CONSUMER if isinstance(group, ConsumerGroup) else _CLASSIC,
        )


API = Api(request=ListGroupsRequest, scope=Scope.GROUPS, handle=handle, refuse=refuse)
