"""OffsetForLeaderEpoch (key 23), versions 2-4. Where an epoch ended: how consumers and followers find a truncation."""

from __future__ import annotations

from broker_engine.wire.api import declare
from broker_engine.wire.kinds import Array, Int16, Int32, Int64, String
from broker_engine.wire.schema import Message, Struct, field


class OffsetForLeaderPartition(Struct):
    partition: Int32 = 0
    current_leader_epoch: Int32 = -1
    leader_epoch: Int32 = 0


class OffsetForLeaderTopic(Struct):
    topic: String = ""
    partitions: Array[OffsetForLeaderPartition] = ()


class OffsetForLeaderEpochRequest(Message, versions="2-4", flexible="4+"):
    replica_id: Int32 = field("3+", default=-2, ignorable=True)
    topics: Array[OffsetForLeaderTopic] = ()


class EpochEndOffset(Struct):
    error_code: Int16 = 0
    partition: Int32 = 0
    leader_epoch: Int32 = -1
    end_offset: Int64 = -1


class OffsetForLeaderTopicResult(Struct):
    topic: String = ""
    partitions: Array[EpochEndOffset] = ()


class OffsetForLeaderEpochResponse(Message, versions="2-4", flexible="4+"):
    throttle_time_ms: Int32 = 0
    topics: Array[OffsetForLeaderTopicResult] = ()


API = declare(23, "OffsetForLeaderEpoch", OffsetForLeaderEpochRequest, OffsetForLeaderEpochResponse)
