"""AddRaftVoter (key 80), versions 0-1: an observer that follows closely becomes a voter. Answered when committed."""

from __future__ import annotations

from broker_engine.errors import BrokerError, ErrorCode
from broker_engine.handlers.api import Api, Call, Scope
from broker_engine.names import ROOT
from broker_engine.quorum.election_state import VoterKey
from broker_engine.quorum.voter_set import Voter, VoterEndpoint
from broker_engine.server.raft_wire import check_cluster
from broker_engine.wire.messages.add_raft_voter import AddRaftVoterRequest, AddRaftVoterResponse


async def handle(request: AddRaftVoterRequest, call: Call) -> AddRaftVoterResponse:
    if call.tenant != ROOT:
        raise BrokerError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    check_cluster(request.cluster_id or None, call.broker.cluster_id)
    endpoints = tuple(VoterEndpoint(each.name, each.host, each.port) for each in request.listeners)
    voter = Voter(VoterKey(request.voter_id, request.voter_directory_id), endpoints)
    await call.broker.metadata.add_voter(voter)
    return AddRaftVoterResponse(error_message=None)


def refuse(request: AddRaftVoterRequest, error: BrokerError) -> AddRaftVoterResponse:
    return AddRaftVoterResponse(error_code=error.code, error_message=error.message or None)


API = Api(request=AddRaftVoterRequest, scope=Scope.NAMELESS, handle=handle, refuse=refuse, is_for_controller=True)
