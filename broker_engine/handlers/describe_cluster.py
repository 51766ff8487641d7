"""DescribeCluster (key 60), versions 0-2. Left out: authorized operations, controllers as endpoints (114)."""

from __future__ import annotations

from broker_engine.errors import BrokerError, ErrorCode
from broker_engine.handlers.api import Api, Call, Scope
from broker_engine.handlers.shown_cluster import controller_id, reachable_brokers
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
    return DescribeClusterResponse(
        cluster_id=call.broker.cluster_id_for(call.principal),
        controller_id=controller_id(call),
        brokers=[
            DescribeClusterBroker(
                broker_id=broker.id,
                host=endpoint.host,
                port=endpoint.port,
                rack=broker.rack,
                is_fenced=broker.is_fenced,
            )
            for broker, endpoint in reachable_brokers(call, with_fenced=request.include_fenced_brokers)
        ],
    )


def refuse(request: DescribeClusterRequest, error: BrokerError) -> DescribeClusterResponse:
    return DescribeClusterResponse(error_code=error.code, error_message=error.message or None)


API = Api(request=DescribeClusterRequest, scope=Scope.NAMELESS, handle=handle, refuse=refuse)
