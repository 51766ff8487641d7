"""EndQuorumEpoch (key 54), versions 0-1: the leader of an epoch resigns; the best of the others need not wait."""

from __future__ import annotations

from broker_engine.errors import BrokerError
from broker_engine.handlers.api import Api, Call, Scope
from broker_engine.quorum.messages import EpochAnswer
from broker_engine.server.raft_wire import check_cluster, end_response, read_end_request
from broker_engine.wire.messages.end_quorum_epoch import EndQuorumEpochRequest, EndQuorumEpochResponse


async def handle(request: EndQuorumEpochRequest, call: Call) -> EndQuorumEpochResponse:
    check_cluster(request.cluster_id, call.broker.cluster_id)
    answer = await call.broker.metadata.node.answer(read_end_request(request))
    assert isinstance(answer, EpochAnswer)
    return end_response(answer)


def refuse(request: EndQuorumEpochRequest, error: BrokerError) -> EndQuorumEpochResponse:
    return EndQuorumEpochResponse(error_code=error.code)


API = Api(request=EndQuorumEpochRequest, scope=Scope.BROKERS, handle=handle, refuse=refuse)
