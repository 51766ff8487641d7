"""FetchSnapshot (key 59), versions 0-1: a node that lags behind the metadata log reads a snapshot, piece by piece."""

from __future__ import annotations

import asyncio

from broker_engine.errors import BrokerError, ErrorCode
from broker_engine.handlers.api import Api, Call, Scope
from broker_engine.names import CLUSTER_METADATA
from broker_engine.quorum.election_state import VoterKey
from broker_engine.quorum.log_index import LogPosition
from broker_engine.quorum.ready import SnapshotServed
from broker_engine.server.raft_wire import check_cluster, only_partition
from broker_engine.wire.messages.fetch_snapshot import (
    FetchSnapshotPartition,
    FetchSnapshotPartitionResult,
    FetchSnapshotRequest,
    FetchSnapshotResponse,
    FetchSnapshotTopicResult,
)

_CHUNK_BYTES_MAX = 1024 * 1024


async def handle(request: FetchSnapshotRequest, call: Call) -> FetchSnapshotResponse:
    check_cluster(request.cluster_id, call.broker.cluster_id)
    asked: FetchSnapshotPartition = only_partition(request.topics)
    position = LogPosition(asked.snapshot_id.epoch, asked.snapshot_id.end_offset)
    snapshots = call.broker.metadata.node.snapshots
    if not await asyncio.to_thread(snapshots.has, position):
        raise BrokerError(ErrorCode.SNAPSHOT_NOT_FOUND)
    if asked.position < 0:
        raise BrokerError(ErrorCode.POSITION_OUT_OF_RANGE)
    chunk_bytes = min(max(0, request.max_bytes), _CHUNK_BYTES_MAX)
    chunk, size_bytes = await asyncio.to_thread(snapshots.read_piece, position, asked.position, chunk_bytes)
    if asked.position >= size_bytes:
        raise BrokerError(ErrorCode.POSITION_OUT_OF_RANGE)
    call.broker.metadata.node.post(SnapshotServed(VoterKey(request.replica_id, asked.replica_directory_id)))
    result = FetchSnapshotPartitionResult(
        snapshot_id=asked.snapshot_id, size=size_bytes, position=asked.position, unaligned_records=[chunk]
    )
    return FetchSnapshotResponse(topics=[FetchSnapshotTopicResult(name=CLUSTER_METADATA, partitions=[result])])


def refuse(request: FetchSnapshotRequest, error: BrokerError) -> FetchSnapshotResponse:
    return FetchSnapshotResponse(error_code=error.code)


API = Api(request=FetchSnapshotRequest, scope=Scope.BROKERS, handle=handle, refuse=refuse)
