"""DescribeGroups (key 15), versions 0-6: classic groups with their members, whose metadata are theirs."""

from __future__ import annotations

from broker_engine.wire.api import declare
from broker_engine.wire.kinds import Array, Bool, Bytes, Int16, Int32, String
from broker_engine.wire.schema import Message, Struct, field

NO_OPERATIONS = -2147483648


class DescribeGroupsRequest(Message, versions="0-6", flexible="5+"):
    groups: Array[String] = ()
    include_authorized_operations: Bool = field("3+", default=False)


class DescribedGroupMember(Struct):
    member_id: String = ""
    group_instance_id: String | None = field("4+", default=None, ignorable=True)
    client_id: String = ""
    client_host: String = ""
    member_metadata: Bytes = b""
    member_assignment: Bytes = b""


class DescribedGroup(Struct):
    error_code: Int16 = 0
    error_message: String | None = field("6+", default=None, ignorable=True)
    group_id: String = ""
    group_state: String = ""
    protocol_type: String = ""
    protocol_data: String = ""
    members: Array[DescribedGroupMember] = ()
    authorized_operations: Int32 = field("3+", default=NO_OPERATIONS, ignorable=True)


class DescribeGroupsResponse(Message, versions="0-6", flexible="5+"):
    throttle_time_ms: Int32 = field("1+", default=0, ignorable=True)
    groups: Array[DescribedGroup] = ()


API = declare(15, "DescribeGroups", DescribeGroupsRequest, DescribeGroupsResponse)
