"""AlterPartitionReassignments (key 45), versions 0-1: new replicas for a partition; null cancels a move under way."""

from __future__ import annotations

from broker_engine.wire.api import declare
from broker_engine.wire.kinds import Array, Bool, Int16, Int32, String
from broker_engine.wire.schema import Message, Struct, field


class ReassignablePartition(Struct):
    partition_index: Int32 = 0
    replicas: Array[Int32] | None = None


class ReassignableTopic(Struct):
    name: String = ""
    partitions: Array[ReassignablePartition] = ()


class AlterPartitionReassignmentsRequest(Message, versions="0-1", flexible="0+"):
    timeout_ms: Int32 = 60000
    allow_replication_factor_change: Bool = field("1+", default=True)
    topics: Array[ReassignableTopic] = ()


class ReassignablePartitionResponse(Struct):
    partition_index: Int32 = 0
    error_code: Int16 = 0
    error_message: String | None = ""


class ReassignableTopicResponse(Struct):
    name: String = ""
    partitions: Array[ReassignablePartitionResponse] = ()


class AlterPartitionReassignmentsResponse(Message, versions="0-1", flexible="0+"):
    throttle_time_ms: Int32 = 0
    allow_replication_factor_change: Bool = field("1+", default=True, ignorable=True)
    error_code: Int16 = 0
    error_message: String | None = ""
    responses: Array[ReassignableTopicResponse] = ()


API = declare(
    45, "AlterPartitionReassignments", AlterPartitionReassignmentsRequest, AlterPartitionReassignmentsResponse
)
