"""Fetch (key 1), versions 4-17; 18, which adds a tag for replicas only, is understood but not advertised.

`durable_offset` is ours: a follower tells its leader what it has on disk (internal listeners only).
"""

from __future__ import annotations

from broker_engine.wire.api import declare
from broker_engine.wire.kinds import Array, Int8, Int16, Int32, Int64, RecordParts, String, Uuid
from broker_engine.wire.primitives import NULL_UUID
from broker_engine.wire.schema import Message, Struct, default_of, field


class FetchPartition(Struct):
    partition: Int32 = 0
    current_leader_epoch: Int32 = field("9+", default=-1, ignorable=True)
    fetch_offset: Int64 = 0
    last_fetched_epoch: Int32 = field("12+", default=-1)
    log_start_offset: Int64 = field("5+", default=-1, ignorable=True)
    partition_max_bytes: Int32 = 0
    replica_directory_id: Uuid = field("17+", default=NULL_UUID, tag=0, ignorable=True)
    high_watermark: Int64 = field("18+", default=9223372036854775807, tag=1, ignorable=True)
    durable_offset: Int64 = field("12+", default=-1, tag=10000, ignorable=True)


class FetchTopic(Struct):
    topic: String = field("4-12", default="", ignorable=True)
    topic_id: Uuid = field("13+", default=NULL_UUID, ignorable=True)
    partitions: Array[FetchPartition] = ()


class ForgottenTopic(Struct):
    topic: String = field("7-12", default="", ignorable=True)
    topic_id: Uuid = field("13+", default=NULL_UUID, ignorable=True)
    partitions: Array[Int32] = ()


class ReplicaState(Struct):
    replica_id: Int32 = -1
    replica_epoch: Int64 = -1


class FetchRequest(Message, versions="4-18", flexible="12+"):
    cluster_id: String | None = field("12+", default=None, tag=0, ignorable=True)
    replica_id: Int32 = field("4-14", default=-1)
    replica_state: ReplicaState = field("15+", default=default_of(ReplicaState), tag=1)
    max_wait_ms: Int32 = 0
    min_bytes: Int32 = 0
    max_bytes: Int32 = 2147483647
    isolation_level: Int8 = 0
    session_id: Int32 = field("7+", default=0, ignorable=True)
    session_epoch: Int32 = field("7+", default=-1, ignorable=True)
    topics: Array[FetchTopic] = ()
    forgotten_topics_data: Array[ForgottenTopic] = field("7+", default=())
    rack_id: String = field("11+", default="", ignorable=True)


class AbortedTransaction(Struct):
    producer_id: Int64 = 0
    first_offset: Int64 = 0


class EpochEndOffset(Struct):
    epoch: Int32 = -1
    end_offset: Int64 = -1


class LeaderIdAndEpoch(Struct):
    leader_id: Int32 = -1
    leader_epoch: Int32 = -1


class SnapshotId(Struct):
    end_offset: Int64 = -1
    epoch: Int32 = -1


class PartitionData(Struct):
    partition_index: Int32 = 0
    error_code: Int16 = 0
    high_watermark: Int64 = 0
    last_stable_offset: Int64 = -1
    log_start_offset: Int64 = field("5+", default=-1, ignorable=True)
    diverging_epoch: EpochEndOffset = field("12+", default=default_of(EpochEndOffset), tag=0)
    current_leader: LeaderIdAndEpoch = field("12+", default=default_of(LeaderIdAndEpoch), tag=1)
    snapshot_id: SnapshotId = field("12+", default=default_of(SnapshotId), tag=2)
    aborted_transactions: Array[AbortedTransaction] | None = ()
    preferred_read_replica: Int32 = field("11+", default=-1)
    records: RecordParts | None = None


class FetchableTopicResponse(Struct):
    topic: String = field("4-12", default="", ignorable=True)
    topic_id: Uuid = field("13+", default=NULL_UUID, ignorable=True)
    partitions: Array[PartitionData] = ()


class NodeEndpoint(Struct):
    node_id: Int32 = 0
    host: String = ""
    port: Int32 = 0
    rack: String | None = None


class FetchResponse(Message, versions="4-18", flexible="12+"):
    throttle_time_ms: Int32 = 0
    error_code: Int16 = field("7+", default=0, ignorable=True)
    session_id: Int32 = field("7+", default=0)
    responses: Array[FetchableTopicResponse] = ()
    node_endpoints: Array[NodeEndpoint] = field("16+", default=(), tag=0)


API = declare(1, "Fetch", FetchRequest, FetchResponse, max_version=17)
