"""OffsetCommit (key 8), versions 2-10. Names up to v9, topic ids in v10; retention_time_ms went away with v5."""

from __future__ import annotations

from broker_engine.wire.api import declare
from broker_engine.wire.kinds import Array, Int16, Int32, Int64, String, Uuid
from broker_engine.wire.primitives import NULL_UUID
from broker_engine.wire.schema import Message, Struct, field


class OffsetCommitRequestPartition(Struct):
    partition_index: Int32 = 0
    committed_offset: Int64 = 0
    committed_leader_epoch: Int32 = field("6+", default=-1, ignorable=True)
    committed_metadata: String | None = ""


class OffsetCommitRequestTopic(Struct):
    name: String = field("2-9", default="", ignorable=True)
    topic_id: Uuid = field("10+", default=NULL_UUID, ignorable=True)
    partitions: Array[OffsetCommitRequestPartition] = ()


class OffsetCommitRequest(Message, versions="2-10", flexible="8+"):
    group_id: String = ""
    generation_id_or_member_epoch: Int32 = -1
    member_id: String = ""
    retention_time_ms: Int64 = field("2-4", default=-1, ignorable=True)
    group_instance_id: String | None = field("7+", default=None)
    topics: Array[OffsetCommitRequestTopic] = ()


class OffsetCommitResponsePartition(Struct):
    partition_index: Int32 = 0
    error_code: Int16 = 0


class OffsetCommitResponseTopic(Struct):
    name: String = field("2-9", default="", ignorable=True)
    topic_id: Uuid = field("10+", default=NULL_UUID, ignorable=True)
    partitions: Array[OffsetCommitResponsePartition] = ()


class OffsetCommitResponse(Message, versions="2-10", flexible="8+"):
    throttle_time_ms: Int32 = field("3+", default=0, ignorable=True)
    topics: Array[OffsetCommitResponseTopic] = ()


API = declare(8, "OffsetCommit", OffsetCommitRequest, OffsetCommitResponse)
