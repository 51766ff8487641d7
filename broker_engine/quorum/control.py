"""The LeaderChange control record, in Kafka's format, so that its own tools can read who led when."""

from __future__ import annotations

import struct
from collections.abc import Iterable

from broker_engine.quorum.election_state import VoterKey
from broker_engine.wire.kinds import Array, Int16, Int32, Uuid
from broker_engine.wire.primitives import NULL_UUID
from broker_engine.wire.schema import Struct, field

_KEY = struct.Struct(">hh")
_KEY_VERSION = 0
LEADER_CHANGE_TYPE = 2
_VERSION = 1


class LeaderChangeVoter(Struct, versions="0-1"):
    voter_id: Int32 = 0
    voter_directory_id: Uuid = field("1+", default=NULL_UUID)


class LeaderChangeMessage(Struct, versions="0-1"):
    version: Int16 = _VERSION
    leader_id: Int32 = 0
    voters: Array[LeaderChangeVoter] = ()
    granting_voters: Array[LeaderChangeVoter] = ()


def leader_change(leader_id: int, voters: Iterable[VoterKey], granting: Iterable[VoterKey]) -> tuple[bytes, bytes]:
    """(key, value) of the control record that opens an epoch."""
    message = LeaderChangeMessage(leader_id=leader_id, voters=_voters(voters), granting_voters=_voters(granting))
    return _KEY.pack(_KEY_VERSION, LEADER_CHANGE_TYPE), message.encode(_VERSION)


def is_leader_change(key: bytes) -> bool:
    return len(key) >= _KEY.size and _KEY.unpack_from(key)[1] == LEADER_CHANGE_TYPE


def _voters(keys: Iterable[VoterKey]) -> list[LeaderChangeVoter]:
    return [LeaderChangeVoter(voter_id=key.node_id, voter_directory_id=key.directory_id) for key in sorted(keys)]
