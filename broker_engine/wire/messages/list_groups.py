"""ListGroups (key 16), versions 0-5: the groups that one broker coordinates."""

from __future__ import annotations

from broker_engine.wire.api import declare
from broker_engine.wire.kinds import Array, Int16, Int32, String
from broker_engine.wire.schema import Message, Struct, field


class ListGroupsRequest(Message, versions="0-5", flexible="3+"):
    states_filter: Array[String] = field("4+", default=())
    types_filter: Array[String] = field("5+", default=())


class ListedGroup(Struct):
    group_id: String = ""
    protocol_type: String = ""
    group_state: String = field("4+", default="", ignorable=True)
    group_type: String = field("5+", default="", ignorable=True)


class ListGroupsResponse(Message, versions="0-5", flexible="3+"):
    throttle_time_ms: Int32 = field("1+", default=0, ignorable=True)
    error_code: Int16 = 0
    groups: Array[ListedGroup] = ()


API = declare(16, "ListGroups", ListGroupsRequest, ListGroupsResponse)
