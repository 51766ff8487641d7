"""EndQuorumEpoch (key 54), versions 0-1: a leader of the metadata quorum resigns and names who should follow it."""

from __future__ import annotations

from broker_engine.wire.api import declare
from broker_engine.wire.kinds import Array, Int16, Int32, String, UInt16, Uuid
from broker_engine.wire.primitives import NULL_UUID
from broker_engine.wire.schema import Message, Struct, field


class EndQuorumEpochReplicaInfo(Struct):
    candidate_id: Int32 = 0
    candidate_directory_id: Uuid = NULL_UUID


class EndQuorumEpochPartition(Struct):
    partition_index: Int32 = 0
    leader_id: Int32 = 0
    leader_epoch: Int32 = 0
    preferred_successors: Array[Int32] = field("0", default=(), ignorable=True)
    preferred_candidates: Array[EndQuorumEpochReplicaInfo] = field("1+", default=(), ignorable=True)


class EndQuorumEpochTopic(Struct):
    topic_name: String = ""
    partitions: Array[EndQuorumEpochPartition] = ()


class EndQuorumEpochLeaderEndpoint(Struct):
    name: String = ""
    host: String = ""
    port: UInt16 = 0


class EndQuorumEpochRequest(Message, versions="0-1", flexible="1+"):
    cluster_id: String | None = None
    topics: Array[EndQuorumEpochTopic] = ()
    leader_endpoints: Array[EndQuorumEpochLeaderEndpoint] = field("1+", default=(), ignorable=True)


class EndQuorumEpochPartitionResult(Struct):
    partition_index: Int32 = 0
    error_code: Int16 = 0
    leader_id: Int32 = 0
    leader_epoch: Int32 = 0


class EndQuorumEpochTopicResult(Struct):
    topic_name: String = ""
    partitions: Array[EndQuorumEpochPartitionResult] = ()


class EndQuorumEpochNodeEndpoint(Struct):
    node_id: Int32 = 0
    host: String = ""
    port: UInt16 = 0


class EndQuorumEpochResponse(Message, versions="0-1", flexible="1+"):
    error_code: Int16 = 0
    topics: Array[EndQuorumEpochTopicResult] = ()
    node_endpoints: Array[EndQuorumEpochNodeEndpoint] = field("1+", default=(), tag=0, ignorable=True)


API = declare(54, "EndQuorumEpoch", EndQuorumEpochRequest, EndQuorumEpochResponse, is_between_brokers=True)
