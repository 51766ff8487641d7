"""RemoveRaftVoter (key 81), version 0: a voter of the metadata quorum leaves it."""

from __future__ import annotations

from broker_engine.wire.api import declare
from broker_engine.wire.kinds import Int16, Int32, String, Uuid
from broker_engine.wire.primitives import NULL_UUID
from broker_engine.wire.schema import Message


class RemoveRaftVoterRequest(Message, versions="0", flexible="0+"):
    cluster_id: String | None = ""
    voter_id: Int32 = 0
    voter_directory_id: Uuid = NULL_UUID


class RemoveRaftVoterResponse(Message, versions="0", flexible="0+"):
    throttle_time_ms: Int32 = 0
    error_code: Int16 = 0
    error_message: String | None = ""


API = declare(81, "RemoveRaftVoter", RemoveRaftVoterRequest, RemoveRaftVoterResponse)
