"""JoinGroup (key 11), versions 0-9. The metadata of each protocol is the client's own bytes and stays as sent."""

from __future__ import annotations

from broker_engine.wire.api import declare
from broker_engine.wire.kinds import Array, Bool, Bytes, Int16, Int32, String
from broker_engine.wire.schema import Message, Struct, field


class JoinGroupRequestProtocol(Struct):
    name: String = ""
    metadata: Bytes = b""


class JoinGroupRequest(Message, versions="0-9", flexible="6+"):
    group_id: String = ""
    session_timeout_ms: Int32 = 0
    rebalance_timeout_ms: Int32 = field("1+", default=-1, ignorable=True)
    member_id: String = ""
    group_instance_id: String | None = field("5+", default=None)
    protocol_type: String = ""
    protocols: Array[JoinGroupRequestProtocol] = ()
    reason: String | None = field("8+", default=None, ignorable=True)


class JoinGroupResponseMember(Struct):
    member_id: String = ""
    group_instance_id: String | None = field("5+", default=None, ignorable=True)
    metadata: Bytes = b""


class JoinGroupResponse(Message, versions="0-9", flexible="6+"):
    throttle_time_ms: Int32 = field("2+", default=0, ignorable=True)
    error_code: Int16 = 0
    generation_id: Int32 = -1
    protocol_type: String | None = field("7+", default=None, ignorable=True)
    protocol_name: String | None = field(default="", nullable="7+")
    leader: String = ""
    skip_assignment: Bool = field("9+", default=False)
    member_id: String = ""
    members: Array[JoinGroupResponseMember] = ()


API = declare(11, "JoinGroup", JoinGroupRequest, JoinGroupResponse)
