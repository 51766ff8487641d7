"""Vote (key 52), versions 0-2: another voter asks for this node's vote, or whether it would get it."""

from __future__ import annotations

from broker_engine.errors import BrokerError
from broker_engine.handlers.api import Api, Call, Scope
from broker_engine.quorum.messages import VoteAnswer
from broker_engine.server.raft_wire import check_cluster, read_vote_request, vote_response
from broker_engine.wire.messages.vote import VoteRequest, VoteResponse


async def handle(request: VoteRequest, call: Call) -> VoteResponse:
    check_cluster(request.cluster_id, call.broker.cluster_id)
    answer = await call.broker.metadata.node.answer(read_vote_request(request))
    assert isinstance(answer, VoteAnswer)
    return vote_response(answer)


def refuse(request: VoteRequest, error: BrokerError) -> VoteResponse:
    return VoteResponse(error_code=error.code)


API = Api(request=VoteRequest, scope=Scope.BROKERS, handle=handle, refuse=refuse)
