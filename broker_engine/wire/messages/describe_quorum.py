"""DescribeQuorum (key 55), versions 0-2: leader, voters and observers of the metadata quorum."""

from __future__ import annotations

from broker_engine.wire.api import declare
from broker_engine.wire.kinds import Array, Int16, Int32, Int64, String, UInt16, Uuid
from broker_engine.wire.primitives import NULL_UUID
from broker_engine.wire.schema import Message, Struct, field


class DescribeQuorumPartition(Struct):
    partition_index: Int32 = 0


class DescribeQuorumTopic(Struct):
    topic_name: String = ""
    partitions: Array[DescribeQuorumPartition] = ()


class DescribeQuorumRequest(Message, versions="0-2", flexible="0+"):
    topics: Array[DescribeQuorumTopic] = ()


class DescribeQuorumReplicaState(Struct):
    replica_id: Int32 = 0
    replica_directory_id: Uuid = field("2+", default=NULL_UUID, ignorable=True)
    log_end_offset: Int64 = 0
    last_fetch_timestamp: Int64 = field("1+", default=-1, ignorable=True)
    last_caught_up_timestamp: Int64 = field("1+", default=-1, ignorable=True)


class DescribeQuorumPartitionResult(Struct):
    partition_index: Int32 = 0
    error_code: Int16 = 0
    error_message: String | None = field("2+", default="", ignorable=True)
    leader_id: Int32 = 0
    leader_epoch: Int32 = 0
    high_watermark: Int64 = 0
    current_voters: Array[DescribeQuorumReplicaState] = ()
    observers: Array[DescribeQuorumReplicaState] = ()


class DescribeQuorumTopicResult(Struct):
    topic_name: String = ""
    partitions: Array[DescribeQuorumPartitionResult] = ()


class DescribeQuorumListener(Struct):
    name: String = ""
    host: String = ""
    port: UInt16 = 0


class DescribeQuorumNode(Struct):
    node_id: Int32 = 0
    listeners: Array[DescribeQuorumListener] = ()


class DescribeQuorumResponse(Message, versions="0-2", flexible="0+"):
    error_code: Int16 = 0
    error_message: String | None = field("2+", default="", ignorable=True)
    topics: Array[DescribeQuorumTopicResult] = ()
    nodes: Array[DescribeQuorumNode] = field("2+", default=(), ignorable=True)


API = declare(55, "DescribeQuorum", DescribeQuorumRequest, DescribeQuorumResponse)
