"""OffsetFetch (key 9), versions 1-10. One group with its topics up to v7, many groups from v8; topic ids in v10."""

from __future__ import annotations

from broker_engine.wire.api import declare
from broker_engine.wire.kinds import Array, Bool, Int16, Int32, Int64, String, Uuid
from broker_engine.wire.primitives import NULL_UUID
from broker_engine.wire.schema import Message, Struct, field


class OffsetFetchRequestTopic(Struct):
    name: String = ""
    partition_indexes: Array[Int32] = ()


class OffsetFetchRequestTopics(Struct):
    name: String = field("8-9", default="", ignorable=True)
    topic_id: Uuid = field("10+", default=NULL_UUID, ignorable=True)
    partition_indexes: Array[Int32] = ()


class OffsetFetchRequestGroup(Struct):
    group_id: String = ""
    member_id: String | None = field("9+", default=None, ignorable=True)
    member_epoch: Int32 = field("9+", default=-1, ignorable=True)
    topics: Array[OffsetFetchRequestTopics] | None = ()


class OffsetFetchRequest(Message, versions="1-10", flexible="6+"):
    group_id: String = field("1-7", default="")
    topics: Array[OffsetFetchRequestTopic] | None = field("1-7", default=(), nullable="2-7")
    groups: Array[OffsetFetchRequestGroup] = field("8+", default=())
    require_stable: Bool = field("7+", default=False)


class OffsetFetchResponsePartition(Struct):
    partition_index: Int32 = 0
    committed_offset: Int64 = 0
    committed_leader_epoch: Int32 = field("5-7", default=-1, ignorable=True)
    metadata: String | None = ""
    error_code: Int16 = 0


class OffsetFetchResponseTopic(Struct):
    name: String = ""
    partitions: Array[OffsetFetchResponsePartition] = ()


class OffsetFetchResponsePartitions(Struct):
    partition_index: Int32 = 0
    committed_offset: Int64 = 0
    committed_leader_epoch: Int32 = -1
    metadata: String | None = ""
    error_code: Int16 = 0


class OffsetFetchResponseTopics(Struct):
    name: String = field("8-9", default="", ignorable=True)
    topic_id: Uuid = field("10+", default=NULL_UUID, ignorable=True)
    partitions: Array[OffsetFetchResponsePartitions] = ()


class OffsetFetchResponseGroup(Struct):
    group_id: String = ""
    topics: Array[OffsetFetchResponseTopics] = ()
    error_code: Int16 = 0


class OffsetFetchResponse(Message, versions="1-10", flexible="6+"):
    throttle_time_ms: Int32 = field("3+", default=0, ignorable=True)
    topics: Array[OffsetFetchResponseTopic] = field("1-7", default=())
    error_code: Int16 = field("2-7", default=0, ignorable=True)
    groups: Array[OffsetFetchResponseGroup] = field("8+", default=())


API = declare(9, "OffsetFetch", OffsetFetchRequest, OffsetFetchResponse)
