"""FindCoordinator (key 10), versions 0-6.

One key up to v3, many from v4; key_type 0 is a group, 1 a transactional id.
"""

from __future__ import annotations

from broker_engine.wire.api import declare
from broker_engine.wire.kinds import Array, Int8, Int16, Int32, String
from broker_engine.wire.schema import Message, Struct, field


class FindCoordinatorRequest(Message, versions="0-6", flexible="3+"):
    key: String = field("0-3", default="")
    key_type: Int8 = field("1+", default=0)
    coordinator_keys: Array[String] = field("4+", default=())


class Coordinator(Struct):
    key: String = ""
    node_id: Int32 = 0
    host: String = ""
    port: Int32 = 0
    error_code: Int16 = 0
    error_message: String | None = ""


class FindCoordinatorResponse(Message, versions="0-6", flexible="3+"):
    throttle_time_ms: Int32 = field("1+", default=0, ignorable=True)
    error_code: Int16 = field("0-3", default=0, ignorable=True)
    error_message: String | None = field("1-3", default="", ignorable=True)
    node_id: Int32 = field("0-3", default=0, ignorable=True)
    host: String = field("0-3", default="", ignorable=True)
    port: Int32 = field("0-3", default=0, ignorable=True)
    coordinators: Array[Coordinator] = field("4+", default=())


API = declare(10, "FindCoordinator", FindCoordinatorRequest, FindCoordinatorResponse)
