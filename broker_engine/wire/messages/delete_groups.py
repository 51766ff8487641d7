"""DeleteGroups (key 42), versions 0-2."""

from __future__ import annotations

from broker_engine.wire.api import declare
from broker_engine.wire.kinds import Array, Int16, Int32, String
from broker_engine.wire.schema import Message, Struct


class DeleteGroupsRequest(Message, versions="0-2", flexible="2+"):
    groups_names: Array[String] = ()


class DeletableGroupResult(Struct):
    group_id: String = ""
    error_code: Int16 = 0


class DeleteGroupsResponse(Message, versions="0-2", flexible="2+"):
    throttle_time_ms: Int32 = 0
    results: Array[DeletableGroupResult] = ()


API = declare(42, "DeleteGroups", DeleteGroupsRequest, DeleteGroupsResponse)
