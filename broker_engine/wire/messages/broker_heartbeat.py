"""BrokerHeartbeat (key 63), versions 0-1: a broker lives, and says what it wants. Left out: v2 (cordoned dirs)."""

from __future__ import annotations

from broker_engine.wire.api import declare
from broker_engine.wire.kinds import Array, Bool, Int16, Int32, Int64, Uuid
from broker_engine.wire.schema import Message, field


class BrokerHeartbeatRequest(Message, versions="0-1", flexible="0+"):
    broker_id: Int32 = 0
    broker_epoch: Int64 = -1
    current_metadata_offset: Int64 = 0
    want_fence: Bool = False
    want_shut_down: Bool = False
    offline_log_dirs: Array[Uuid] = field("1+", default=(), tag=0, ignorable=True)


class BrokerHeartbeatResponse(Message, versions="0-1", flexible="0+"):
    throttle_time_ms: Int32 = 0
    error_code: Int16 = 0
    is_caught_up: Bool = False
    is_fenced: Bool = True
    should_shut_down: Bool = False


API = declare(63, "BrokerHeartbeat", BrokerHeartbeatRequest, BrokerHeartbeatResponse, is_between_brokers=True)
