"""FetchSnapshot (key 59), versions 0-1: a replica of the metadata log reads a snapshot, piece by piece."""

from __future__ import annotations

from broker_engine.wire.api import declare
from broker_engine.wire.kinds import Array, Int16, Int32, Int64, RecordParts, String, UInt16, Uuid
from broker_engine.wire.primitives import NULL_UUID
from broker_engine.wire.schema import Message, Struct, default_of, field


class FetchSnapshotId(Struct):
    end_offset: Int64 = 0
    epoch: Int32 = 0


class FetchSnapshotPartition(Struct):
    partition: Int32 = 0
    current_leader_epoch: Int32 = 0
    snapshot_id: FetchSnapshotId = default_of(FetchSnapshotId)
    position: Int64 = 0
    replica_directory_id: Uuid = field("1+", default=NULL_UUID, tag=0, ignorable=True)


class FetchSnapshotTopic(Struct):
    name: String = ""
    partitions: Array[FetchSnapshotPartition] = ()


class FetchSnapshotRequest(Message, versions="0-1", flexible="0+"):
    cluster_id: String | None = field(default=None, tag=0, ignorable=True)
    replica_id: Int32 = -1
    max_bytes: Int32 = 2147483647
    topics: Array[FetchSnapshotTopic] = ()


class FetchSnapshotLeader(Struct):
    leader_id: Int32 = 0
    leader_epoch: Int32 = 0


class FetchSnapshotPartitionResult(Struct):
    index: Int32 = 0
    error_code: Int16 = 0
    snapshot_id: FetchSnapshotId = default_of(FetchSnapshotId)
    current_leader: FetchSnapshotLeader = field(default=default_of(FetchSnapshotLeader), tag=0, ignorable=True)
    size: Int64 = 0
    position: Int64 = 0
    unaligned_records: RecordParts = b""


class FetchSnapshotTopicResult(Struct):
    name: String = ""
    partitions: Array[FetchSnapshotPartitionResult] = ()


class FetchSnapshotNodeEndpoint(Struct):
    node_id: Int32 = 0
    host: String = ""
    port: UInt16 = 0


class FetchSnapshotResponse(Message, versions="0-1", flexible="0+"):
    throttle_time_ms: Int32 = 0
    error_code: Int16 = 0
    topics: Array[FetchSnapshotTopicResult] = ()
    node_endpoints: Array[FetchSnapshotNodeEndpoint] = field("1+", default=(), tag=0, ignorable=True)


API = declare(59, "FetchSnapshot", FetchSnapshotRequest, FetchSnapshotResponse, is_between_brokers=True)
