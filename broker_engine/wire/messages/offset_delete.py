"""OffsetDelete (key 47), version 0. Never flexible."""

from __future__ import annotations

from broker_engine.wire.api import declare
from broker_engine.wire.kinds import Array, Int16, Int32, String
from broker_engine.wire.schema import Message, Struct


class OffsetDeleteRequestPartition(Struct):
    partition_index: Int32 = 0


class OffsetDeleteRequestTopic(Struct):
    name: String = ""
    partitions: Array[OffsetDeleteRequestPartition] = ()


class OffsetDeleteRequest(Message, versions="0", flexible="none"):
    group_id: String = ""
    topics: Array[OffsetDeleteRequestTopic] = ()


class OffsetDeleteResponsePartition(Struct):
    partition_index: Int32 = 0
    error_code: Int16 = 0


class OffsetDeleteResponseTopic(Struct):
    name: String = ""
    partitions: Array[OffsetDeleteResponsePartition] = ()


class OffsetDeleteResponse(Message, versions="0", flexible="none"):
    error_code: Int16 = 0
    throttle_time_ms: Int32 = 0
    topics: Array[OffsetDeleteResponseTopic] = ()


API = declare(47, "OffsetDelete", OffsetDeleteRequest, OffsetDeleteResponse)
