"""Heartbeat (key 12), versions 0-4."""

from __future__ import annotations

from broker_engine.wire.api import declare
from broker_engine.wire.kinds import Int16, Int32, String
from broker_engine.wire.schema import Message, field


class HeartbeatRequest(Message, versions="0-4", flexible="4+"):
    group_id: String = ""
    generation_id: Int32 = 0
    member_id: String = ""
    group_instance_id: String | None = field("3+", default=None)


class HeartbeatResponse(Message, versions="0-4", flexible="4+"):
    throttle_time_ms: Int32 = field("1+", default=0, ignorable=True)
    error_code: Int16 = 0


API = declare(12, "Heartbeat", HeartbeatRequest, HeartbeatResponse)
