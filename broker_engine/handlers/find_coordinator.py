"""FindCoordinator (key 10), versions 0-6: the leader of the partition of `__consumer_offsets` that a group's name falls
on, or of `__transaction_state` for a transactional id. The first question makes the topic. Left out: share groups (42).
"""

from __future__ import annotations

from broker_engine.errors import BrokerError, ErrorCode
from broker_engine.handlers.api import Api, Call, Scope
from broker_engine.names import from_wire, physical
from broker_engine.wire.messages.find_coordinator import Coordinator, FindCoordinatorRequest, FindCoordinatorResponse

_GROUP, _TRANSACTION = 0, 1
_FIRST_VERSION_WITH_SEVERAL = 4
_NOBODY = -1


def handle(request: FindCoordinatorRequest, call: Call) -> FindCoordinatorResponse:
    if call.version < _FIRST_VERSION_WITH_SEVERAL:
        return _single(_find(request.key, request.key_type, call))
    return FindCoordinatorResponse(
        coordinators=[_find(key, request.key_type, call) for key in dict.fromkeys(request.coordinator_keys)]
    )


def refuse(request: FindCoordinatorRequest, error: BrokerError) -> FindCoordinatorResponse:
    response = _single(_failed(request.key, error.code, error.message))
    response.coordinators = [_failed(key, error.code, error.message) for key in request.coordinator_keys]
    return response


def _find(key: str, key_type: int, call: Call) -> Coordinator:
    if key_type not in (_GROUP, _TRANSACTION):
        return _failed(key, ErrorCode.INVALID_REQUEST, f"coordinator type {key_type} is not known")
    coordinator = call.broker.groups if key_type == _GROUP else call.broker.transactions
    node_id = coordinator.node_of(physical(from_wire(key, call.tenant)))
    for node in call.broker.nodes_for(call.session.listener):
        if node.id == node_id:
            return Coordinator(key=key, node_id=node.id, host=node.host, port=node.port, error_message="")
    coordinator.ensure_topic()
    return _failed(key, ErrorCode.COORDINATOR_NOT_AVAILABLE, "there is no coordinator yet")


def _failed(key: str, code: ErrorCode, text: str) -> Coordinator:
    return Coordinator(key=key, node_id=_NOBODY, host="", port=_NOBODY, error_code=code, error_message=text)


def _single(found: Coordinator) -> FindCoordinatorResponse:
    return FindCoordinatorResponse(
        error_code=found.error_code,
        error_message=found.error_message,
        node_id=found.node_id,
        host=found.host,
        port=found.port,
    )


API = Api(request=FindCoordinatorRequest, scope=Scope.GROUPS, handle=handle, refuse=refuse)
