"""Identify (key 10004, private), version 0: who this node is and which cluster it is in, as other nodes ask at start.

A node of another cluster is told so: the two must never mix. So is one whose number another process has: whoever is
asked looks at the address that it knows for that number.
"""

from __future__ import annotations

from collections.abc import Awaitable

from broker_engine.client.errors import ConnectionFailed
from broker_engine.errors import BrokerError, ErrorCode
from broker_engine.handlers.api import Api, Call, Scope
from broker_engine.wire.messages.internal_identify import IdentifyRequest, IdentifyResponse

_LANE = "identify"
_TWIN_TIMEOUT_MS = 300


def handle(request: IdentifyRequest, call: Call) -> IdentifyResponse | Awaitable[IdentifyResponse]:
    identity = call.broker.identity
    call.broker.peers.note_alive(request.node_id)
    if request.cluster_id and identity.cluster_id and request.cluster_id != identity.cluster_id:
        text = f"node {identity.node_id} belongs to cluster {identity.cluster_id}, not to {request.cluster_id}"
        return refuse(request, BrokerError(ErrorCode.INCONSISTENT_CLUSTER_ID, text))
    is_sought = request.is_twin_sought and request.node_id != identity.node_id
    return _after_a_look(request, call) if is_sought else _answer(call)


def refuse(request: IdentifyRequest, error: BrokerError) -> IdentifyResponse:
    return IdentifyResponse(error_code=error.code, error_message=error.message or None)


async def _after_a_look(request: IdentifyRequest, call: Call) -> IdentifyResponse:
    peers = call.broker.peers
    try:
        host, port = peers.address_of(request.node_id)
        found = await peers.ask(
            request.node_id, IdentifyRequest(), IdentifyResponse, lane=_LANE, timeout_ms=_TWIN_TIMEOUT_MS
        )
    except ConnectionFailed:
        return _answer(call)
    if found.incarnation_id != request.incarnation_id:
        text = f"node {request.node_id} runs already, at {host}:{port}"
        raise BrokerError(ErrorCode.DUPLICATE_BROKER_REGISTRATION, text)
    return _answer(call)


def _answer(call: Call) -> IdentifyResponse:
    identity = call.broker.identity
    leader_id, leader_epoch = call.broker.known_leader
    return IdentifyResponse(
        cluster_id=identity.cluster_id,
        node_id=identity.node_id,
        directory_id=identity.directory_id,
        leader_id=-1 if leader_id is None else leader_id,
        leader_epoch=leader_epoch,
        is_blank=not identity.cluster_id,
        is_controller=identity.is_controller,
        incarnation_id=identity.incarnation_id,
    )


API = Api(
    request=IdentifyRequest,
    scope=Scope.BROKERS,
    handle=handle,
    refuse=refuse,
    is_before_joining=True,
    is_next_allowed=True,
)
