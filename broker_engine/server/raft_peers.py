"""What a node of the quorum asks the others, over their controller listeners.

Votes, fetches and snapshots have a lane each: a long poll never holds up a vote.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from broker_engine.errors import BrokerError, ErrorCode
from broker_engine.names import CLUSTER_METADATA
from broker_engine.quorum import messages as m
from broker_engine.quorum.election_state import VoterKey
from broker_engine.quorum.log_index import LogPosition
from broker_engine.quorum.state import Timing
from broker_engine.server import raft_wire
from broker_engine.server.metadata_log import parse_entries
from broker_engine.server.metadata_snapshots import MetadataSnapshots, Snapshot, decode_snapshot
from broker_engine.server.peers import Peers
from broker_engine.wire.messages import fetch_snapshot as snapshot_api
from broker_engine.wire.messages.begin_quorum_epoch import BeginQuorumEpochResponse
from broker_engine.wire.messages.end_quorum_epoch import EndQuorumEpochResponse
from broker_engine.wire.messages.fetch import FetchResponse
from broker_engine.wire.messages.vote import VoteResponse
from broker_engine.wire.schema import Message

VOTE_LANE, FETCH_LANE, SNAPSHOT_LANE = "quorum", "metadata-fetch", "metadata-snapshot"
FETCH_WAIT_MS_MAX = 500
_CHUNK_BYTES = 1024 * 1024
_SNAPSHOT_BYTES_MAX = 1 << 30

R = TypeVar("R", bound=Message)
T = TypeVar("T")


class RaftPeers:
    def __init__(self, peers: Peers, me: VoterKey, cluster_id: str, timing: Timing) -> None:
        self._peers = peers
        self._me = me
        self._cluster_id = cluster_id
        self._timing = timing
        self._calm_epoch = -1
        """The epoch whose leader answered the last fetch: only then may the next one wait there."""

    async def ask(self, node_id: int, request: m.Request) -> m.Answer:
        """ConnectionFailed where there is no answer, BrokerError where it is none that we can use."""
        match request:
            case m.VoteRequest():
                return await self._ask_vote(node_id, request)
            case m.BeginEpochRequest():
                begin = raft_wire.begin_request(request, self._cluster_id)
                begun = await self._ask_soon(node_id, begin, BeginQuorumEpochResponse)
                return raft_wire.read_epoch_response(request, begun)
            case m.EndEpochRequest():
                end = raft_wire.end_request(request, self._cluster_id)
                ended = await self._ask_soon(node_id, end, EndQuorumEpochResponse)
                return raft_wire.read_epoch_response(request, ended)
            case m.FetchRequest():
                return await self._ask_fetch(node_id, request)

    async def _ask_vote(self, node_id: int, request: m.VoteRequest) -> m.VoteAnswer:
        message = raft_wire.vote_request(request, self._cluster_id)
        return raft_wire.read_vote_response(request, await self._ask_soon(node_id, message, VoteResponse))

    async def _ask_soon(self, node_id: int, message: Message, answer: type[R]) -> R:
        timeout_ms = self._timing.election_timeout_ms
        return await self._peers.ask(node_id, message, answer, lane=VOTE_LANE, timeout_ms=timeout_ms)

    async def _ask_fetch(self, node_id: int, request: m.FetchRequest) -> m.FetchAnswer:
        # The first one of an epoch, or after an error, is answered at once: its answer tells what was missed.
        longest_ms = min(FETCH_WAIT_MS_MAX, self._timing.fetch_timeout_ms // 4)
        wait_ms = longest_ms if request.epoch == self._calm_epoch else 0
        self._calm_epoch = -1
        message = raft_wire.fetch_request(request, self._cluster_id, wait_ms)
        response = await self._peers.ask(
            node_id, message, FetchResponse, lane=FETCH_LANE, timeout_ms=self._timing.fetch_timeout_ms
        )
        data = raft_wire.fetched_partition(response)
        entries = tuple(parse_entries(_joined(data.records)))
        if data.error_code == ErrorCode.NONE:
            self._calm_epoch = request.epoch
        return raft_wire.read_fetch_response(request, data, entries)

    async def fetch_snapshot(
        self,
        node_id: int,
        position: LogPosition,
        epoch: int,
        snapshots: MetadataSnapshots,
        on_progress: Callable[[], None],
    ) -> Snapshot:
        """Whole, verified and on disk. SnapshotError where it is damaged."""
        data = await self._fetch_pieces(node_id, position, epoch, on_progress)
        reading = asyncio.to_thread(_kept, data, position, snapshots)
        return await _telling(reading, on_progress, every_s=self._timing.fetch_timeout_ms / 4000)

    async def _fetch_pieces(
        self, node_id: int, position: LogPosition, epoch: int, on_progress: Callable[[], None]
    ) -> bytes:
        data = bytearray()
        size_bytes = 1
        while len(data) < size_bytes:
            chunk = await self._fetch_chunk(node_id, position, epoch, len(data))
            size_bytes = chunk.size
            piece = _joined(chunk.unaligned_records)
            if not piece or size_bytes > _SNAPSHOT_BYTES_MAX:
                raise BrokerError(ErrorCode.INVALID_REQUEST, "a snapshot that has no end")
            data += piece
            on_progress()
        return bytes(data)

    async def _fetch_chunk(
        self, node_id: int, position: LogPosition, epoch: int, offset: int
    ) -> snapshot_api.FetchSnapshotPartitionResult:
        partition = snapshot_api.FetchSnapshotPartition(
            current_leader_epoch=epoch,
            snapshot_id=snapshot_api.FetchSnapshotId(end_offset=position.end_offset, epoch=position.epoch),
            position=offset,
            replica_directory_id=self._me.directory_id,
        )
        request = snapshot_api.FetchSnapshotRequest(
            cluster_id=self._cluster_id,
            replica_id=self._me.node_id,
            max_bytes=_CHUNK_BYTES,
            topics=[snapshot_api.FetchSnapshotTopic(name=CLUSTER_METADATA, partitions=[partition])],
        )
        response = await self._peers.ask(
            node_id,
            request,
            snapshot_api.FetchSnapshotResponse,
            lane=SNAPSHOT_LANE,
            timeout_ms=self._timing.fetch_timeout_ms,
        )
        if response.error_code != ErrorCode.NONE:
            raise BrokerError(ErrorCode(response.error_code))
        result: snapshot_api.FetchSnapshotPartitionResult = raft_wire.only_partition(response.topics)
        if result.error_code != ErrorCode.NONE:
            raise BrokerError(ErrorCode(result.error_code))
        return result


def _kept(data: bytes, position: LogPosition, snapshots: MetadataSnapshots) -> Snapshot:
    """In a thread."""
    snapshot = decode_snapshot(data, position)
    snapshots.write(position, data)
    return snapshot


async def _telling(work: Coroutine[Any, Any, T], tell: Callable[[], None], *, every_s: float) -> T:
    """What the work answers; `tell` is called while it lasts."""
    task = asyncio.ensure_future(work)
    try:
        while not task.done():
            await asyncio.wait({task}, timeout=every_s)
            tell()
    finally:
        task.cancel()
    return task.result()


def _joined(records: object) -> bytes:
    if records is None:
        return b""
    if isinstance(records, bytes | bytearray | memoryview):
        return bytes(records)
    assert isinstance(records, list | tuple)
    return b"".join(bytes(part) for part in records)
