"""LeaveGroup (key 13), versions 0-5. One member up to v2, many from v3."""

from __future__ import annotations

from broker_engine.wire.api import declare
from broker_engine.wire.kinds import Array, Int16, Int32, String
from broker_engine.wire.schema import Message, Struct, field


class MemberIdentity(Struct):
    member_id: String = ""
    group_instance_id: String | None = None
    reason: String | None = field("5+", default=None, ignorable=True)


class LeaveGroupRequest(Message, versions="0-5", flexible="4+"):
    group_id: String = ""
    member_id: String = field("0-2", default="")
    members: Array[MemberIdentity] = field("3+", default=())


class MemberResponse(Struct):
    member_id: String = ""
    group_instance_id: String | None = ""
    error_code: Int16 = 0


class LeaveGroupResponse(Message, versions="0-5", flexible="4+"):
    throttle_time_ms: Int32 = field("1+", default=0, ignorable=True)
    error_code: Int16 = 0
    members: Array[MemberResponse] = field("3+", default=())


API = declare(13, "LeaveGroup", LeaveGroupRequest, LeaveGroupResponse)
