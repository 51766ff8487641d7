"""BeginQuorumEpoch (key 53), versions 0-1: a new leader of the metadata quorum tells the voters of its epoch."""

from __future__ import annotations

from broker_engine.wire.api import declare
from broker_engine.wire.kinds import Array, Int16, Int32, String, UInt16, Uuid
from broker_engine.wire.primitives import NULL_UUID
from broker_engine.wire.schema import Message, Struct, field


class BeginQuorumEpochPartition(Struct):
    partition_index: Int32 = 0
    voter_directory_id: Uuid = field("1+", default=NULL_UUID, ignorable=True)
    leader_id: Int32 = 0
    leader_epoch: Int32 = 0


class BeginQuorumEpochTopic(Struct):
    topic_name: String = ""
    partitions: Array[BeginQuorumEpochPartition] = ()


class BeginQuorumEpochLeaderEndpoint(Struct):
    name: String = ""
    host: String = ""
    port: UInt16 = 0


class BeginQuorumEpochRequest(Message, versions="0-1", flexible="1+"):
    cluster_id: String | None = None
    voter_id: Int32 = field("1+", default=-1, ignorable=True)
    topics: Array[BeginQuorumEpochTopic] = ()
    leader_endpoints: Array[BeginQuorumEpochLeaderEndpoint] = field("1+", default=(), ignorable=True)


class BeginQuorumEpochPartitionResult(Struct):
    partition_index: Int32 = 0
    error_code: Int16 = 0
    leader_id: Int32 = 0
    leader_epoch: Int32 = 0


class BeginQuorumEpochTopicResult(Struct):
    topic_name: String = ""
    partitions: Array[BeginQuorumEpochPartitionResult] = ()


class BeginQuorumEpochNodeEndpoint(Struct):
    node_id: Int32 = 0
    host: String = ""
    port: UInt16 = 0


class BeginQuorumEpochResponse(Message, versions="0-1", flexible="1+"):
    error_code: Int16 = 0
    topics: Array[BeginQuorumEpochTopicResult] = ()
    node_endpoints: Array[BeginQuorumEpochNodeEndpoint] = field("1+", default=(), tag=0, ignorable=True)


API = declare(53, "BeginQuorumEpoch", BeginQuorumEpochRequest, BeginQuorumEpochResponse, is_between_brokers=True)
