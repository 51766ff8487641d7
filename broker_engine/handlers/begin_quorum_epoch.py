"""BeginQuorumEpoch (key 53), versions 0-1: the leader of a new epoch makes itself known."""

from __future__ import annotations

from broker_engine.errors import BrokerError
from broker_engine.handlers.api import Api, Call, Scope
from broker_engine.quorum.messages import EpochAnswer
from broker_engine.server.raft_wire import begin_response, check_cluster, read_begin_request
from broker_engine.wire.messages.begin_quorum_epoch import BeginQuorumEpochRequest, BeginQuorumEpochResponse


async def handle(request: BeginQuorumEpochRequest, call: Call) -> BeginQuorumEpochResponse:
    check_cluster(request.cluster_id, call.broker.cluster_id)
    answer = await call.broker.metadata.node.answer(read_begin_request(request))
    assert isinstance(answer, EpochAnswer)
    return begin_response(answer)


def refuse(request: BeginQuorumEpochRequest, error: BrokerError) -> BeginQuorumEpochResponse:
    return BeginQuorumEpochResponse(error_code=error.code)


API = Api(request=BeginQuorumEpochRequest, scope=Scope.BROKERS, handle=handle, refuse=refuse)
