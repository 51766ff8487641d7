"""ListOffsets (key 2), versions 1-11.

Timestamps below zero are questions: -1 latest, -2 earliest, -3 the largest timestamp.
"""

from __future__ import annotations

from broker_engine.wire.api import declare
from broker_engine.wire.kinds import Array, Int8, Int16, Int32, Int64, String
from broker_engine.wire.schema import Message, Struct, field


class ListOffsetsPartition(Struct):
    partition_index: Int32 = 0
    current_leader_epoch: Int32 = field("4+", default=-1, ignorable=True)
    timestamp: Int64 = 0


class ListOffsetsTopic(Struct):
    name: String = ""
    partitions: Array[ListOffsetsPartition] = ()


class ListOffsetsRequest(Message, versions="1-11", flexible="6+"):
    replica_id: Int32 = 0
    isolation_level: Int8 = field("2+", default=0)
    topics: Array[ListOffsetsTopic] = ()
    timeout_ms: Int32 = field("10+", default=0, ignorable=True)


class ListOffsetsPartitionResponse(Struct):
    partition_index: Int32 = 0
    error_code: Int16 = 0
    timestamp: Int64 = -1
    offset: Int64 = -1
    leader_epoch: Int32 = field("4+", default=-1)


class ListOffsetsTopicResponse(Struct):
    name: String = ""
    partitions: Array[ListOffsetsPartitionResponse] = ()


class ListOffsetsResponse(Message, versions="1-11", flexible="6+"):
    throttle_time_ms: Int32 = field("2+", default=0, ignorable=True)
    topics: Array[ListOffsetsTopicResponse] = ()


API = declare(2, "ListOffsets", ListOffsetsRequest, ListOffsetsResponse)
