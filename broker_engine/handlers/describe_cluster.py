"""DescribeCluster (key 60), versions 0-2. Left out: authorized operations, controllers as endpoints (114)."""

from __future__ import annotations

from broker_engine.errors import BrokerError, ErrorCode
from broker_engine.handlers.api import Api, Call, Scope
from broker_engine.wire.messages.describe_cluster import (
    DescribeClusterBroker,
    DescribeClusterRequest,
    DescribeClusterResponse,
)

BROKERS, CONTROLLERS = 1, 2


def handle(request: DescribeClusterRequest, call: Call) -> DescribeClusterResponse:
    if request.endpoint_type == CONTROLLERS:
        raise BrokerError(ErrorCode.MISMATCHED_ENDPOINT_TYPE, "this listener is a broker's, not a controller's")
    if request.endpoint_type != BROKERS:
        raise BrokerError(ErrorCode.UNSUPPORTED_ENDPOINT_TYPE, f"endpoint type {request.endpoint_type} is unknown")
    broker = call.broker
    return DescribeClusterResponse(
        cluster_id=broker.cluster_id_for(call.principal),
        controller_id=broker.node_id,
        brokers=[
            DescribeClusterBroker(broker_id=node.id, host=node.host, port=node.port, rack=node.rack)
            for node in broker.nodes_for(call.session.listener)
        ],
    )


def refuse(request: DescribeClusterRequest, error: BrokerError) -> DescribeClusterResponse:
    return DescribeClusterResponse(error_code=error.code, error_message=error.message or None)


API = Api(request=DescribeClusterRequest, scope=Scope.NAMELESS, handle=handle, refuse=refuse)
