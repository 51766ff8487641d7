"""Voters as the image has them, and as the quorum core does."""

from __future__ import annotations

from broker_engine.metadata.image import MetadataImage
from broker_engine.quorum.election_state import VoterKey
from broker_engine.quorum.voter_set import Voter, VoterEndpoint, VoterSet


def voters_of(image: MetadataImage) -> VoterSet:
    return VoterSet.of(
        Voter(
            VoterKey(voter.id, voter.directory_id),
            tuple(VoterEndpoint(endpoint.name, endpoint.host, endpoint.port) for endpoint in voter.endpoints),
        )
        for voter in image.voters
    )
