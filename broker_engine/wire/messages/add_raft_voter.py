"""AddRaftVoter (key 80), versions 0-1: an observer of the metadata quorum becomes a voter."""

from __future__ import annotations

from broker_engine.wire.api import declare
from broker_engine.wire.kinds import Array, Bool, Int16, Int32, String, UInt16, Uuid
from broker_engine.wire.primitives import NULL_UUID
from broker_engine.wire.schema import Message, Struct, field


class AddRaftVoterListener(Struct):
    name: String = ""
    host: String = ""
    port: UInt16 = 0


class AddRaftVoterRequest(Message, versions="0-1", flexible="0+"):
    cluster_id: String | None = ""
    timeout_ms: Int32 = 0
    voter_id: Int32 = 0
    voter_directory_id: Uuid = NULL_UUID
    listeners: Array[AddRaftVoterListener] = ()
    ack_when_committed: Bool = field("1+", default=True)


class AddRaftVoterResponse(Message, versions="0-1", flexible="0+"):
    throttle_time_ms: Int32 = 0
    error_code: Int16 = 0
    error_message: String | None = ""


API = declare(80, "AddRaftVoter", AddRaftVoterRequest, AddRaftVoterResponse)
