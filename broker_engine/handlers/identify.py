"""Identify (key 10004, private), version 0: who this node is and which cluster it is in, as other nodes ask at start.

A node of another cluster is told so: the two must never mix.
"""

from __future__ import annotations

from broker_engine.errors import BrokerError, ErrorCode
from broker_engine.handlers.api import Api, Call, Scope
from broker_engine.wire.messages.internal_identify import IdentifyRequest, IdentifyResponse


def handle(request: IdentifyRequest, call: Call) -> IdentifyResponse:
    identity = call.broker.identity
    if request.cluster_id and identity.cluster_id and request.cluster_id != identity.cluster_id:
        text = f"node {identity.node_id} belongs to cluster {identity.cluster_id}, not to {request.cluster_id}"
        return refuse(request, BrokerError(ErrorCode.INCONSISTENT_CLUSTER_ID, text))
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


def refuse(request: IdentifyRequest, error: BrokerError) -> IdentifyResponse:
    return IdentifyResponse(error_code=error.code, error_message=error.message or None)


API = Api(request=IdentifyRequest, scope=Scope.BROKERS, handle=handle, refuse=refuse, is_before_joining=True)
