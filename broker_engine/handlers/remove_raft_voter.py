"""RemoveRaftVoter (key 81), version 0: a voter leaves, the leader itself included. Answered when committed."""

from __future__ import annotations

from broker_engine.errors import BrokerError, ErrorCode
from broker_engine.handlers.api import Api, Call, Scope
from broker_engine.names import ROOT
from broker_engine.quorum.election_state import VoterKey
from broker_engine.server.raft_wire import check_cluster
from broker_engine.wire.messages.remove_raft_voter import RemoveRaftVoterRequest, RemoveRaftVoterResponse


async def handle(request: RemoveRaftVoterRequest, call: Call) -> RemoveRaftVoterResponse:
    if call.tenant != ROOT:
        raise BrokerError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    check_cluster(request.cluster_id or None, call.broker.cluster_id)
    await call.broker.metadata.remove_voter(VoterKey(request.voter_id, request.voter_directory_id))
    return RemoveRaftVoterResponse(error_message=None)


def refuse(request: RemoveRaftVoterRequest, error: BrokerError) -> RemoveRaftVoterResponse:
    return RemoveRaftVoterResponse(error_code=error.code, error_message=error.message or None)


API = Api(request=RemoveRaftVoterRequest, scope=Scope.NAMELESS, handle=handle, refuse=refuse, is_for_controller=True)
