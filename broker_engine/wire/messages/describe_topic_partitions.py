"""DescribeTopicPartitions (key 75), version 0.

Pages by cursor; a null cursor begins at the start, a null one in the answer ends it.
"""

from __future__ import annotations

from broker_engine.wire.api import declare
from broker_engine.wire.kinds import Array, Bool, Int16, Int32, String, Uuid
from broker_engine.wire.primitives import NULL_UUID
from broker_engine.wire.schema import Message, Struct


class TopicRequest(Struct):
    name: String = ""


class Cursor(Struct):
    topic_name: String = ""
    partition_index: Int32 = 0


class DescribeTopicPartitionsRequest(Message, versions="0-0", flexible="0+"):
    topics: Array[TopicRequest] = ()
    response_partition_limit: Int32 = 2000
    cursor: Cursor | None = None


class DescribeTopicPartitionsResponsePartition(Struct):
    error_code: Int16 = 0
    partition_index: Int32 = 0
    leader_id: Int32 = 0
    leader_epoch: Int32 = -1
    replica_nodes: Array[Int32] = ()
    isr_nodes: Array[Int32] = ()
    eligible_leader_replicas: Array[Int32] | None = None
    last_known_elr: Array[Int32] | None = None
    offline_replicas: Array[Int32] = ()


class DescribeTopicPartitionsResponseTopic(Struct):
    error_code: Int16 = 0
    name: String | None = ""
    topic_id: Uuid = NULL_UUID
    is_internal: Bool = False
    partitions: Array[DescribeTopicPartitionsResponsePartition] = ()
    topic_authorized_operations: Int32 = -2147483648


class DescribeTopicPartitionsResponse(Message, versions="0-0", flexible="0+"):
    throttle_time_ms: Int32 = 0
    topics: Array[DescribeTopicPartitionsResponseTopic] = ()
    next_cursor: Cursor | None = None


API = declare(75, "DescribeTopicPartitions", DescribeTopicPartitionsRequest, DescribeTopicPartitionsResponse)
