"""The quorum core's messages as Kafka's: Vote, BeginQuorumEpoch, EndQuorumEpoch, Fetch, and back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from broker_engine.errors import BrokerError, ErrorCode
from broker_engine.names import CLUSTER_METADATA
from broker_engine.quorum import messages as m
from broker_engine.quorum.election_state import NO_NODE, VoterKey
from broker_engine.quorum.log_index import LogPosition
from broker_engine.quorum.ready import Entry
from broker_engine.server.metadata_log import METADATA_TOPIC_ID
from broker_engine.wire.messages import begin_quorum_epoch as begin
from broker_engine.wire.messages import end_quorum_epoch as end
from broker_engine.wire.messages import fetch, vote

FETCH_BYTES_MAX = 1024 * 1024
_NO_REQUEST_ID = 0
"""Requests of others: a connection brings each answer back to its own."""


def check_cluster(cluster_id: str | None, mine: str) -> None:
    """A node of another cluster must never mix with this one."""
    if cluster_id is not None and cluster_id != mine:
        text = f"this node belongs to cluster {mine}, not to {cluster_id}"
        raise BrokerError(ErrorCode.INCONSISTENT_CLUSTER_ID, text)


def only_partition(topics: Sequence[Any]) -> Any:
    """Of `__cluster_metadata`: nothing else is a quorum."""
    if len(topics) != 1 or len(topics[0].partitions) != 1:
        raise BrokerError(ErrorCode.INVALID_REQUEST, "one partition, the metadata's, is asked about")
    return topics[0].partitions[0]


def _leader_id(number: int) -> int | None:
    return None if number == NO_NODE else number


def _number(leader_id: int | None) -> int:
    return NO_NODE if leader_id is None else leader_id


# --- Vote


def vote_request(request: m.VoteRequest, cluster_id: str) -> vote.VoteRequest:
    partition = vote.VotePartition(
        replica_epoch=request.epoch,
        replica_id=request.candidate.node_id,
        replica_directory_id=request.candidate.directory_id,
        voter_directory_id=request.voter.directory_id,
        last_offset_epoch=request.last.epoch,
        last_offset=request.last.end_offset,
        pre_vote=request.is_pre_vote,
    )
    topics = [vote.VoteTopic(topic_name=CLUSTER_METADATA, partitions=[partition])]
    return vote.VoteRequest(cluster_id=cluster_id, voter_id=request.voter.node_id, topics=topics)


def read_vote_request(request: vote.VoteRequest) -> m.VoteRequest:
    partition: vote.VotePartition = only_partition(request.topics)
    return m.VoteRequest(
        request_id=_NO_REQUEST_ID,
        epoch=partition.replica_epoch,
        candidate=VoterKey(partition.replica_id, partition.replica_directory_id),
        voter=VoterKey(request.voter_id, partition.voter_directory_id),
        last=LogPosition(partition.last_offset_epoch, partition.last_offset),
        is_pre_vote=partition.pre_vote,
    )


def vote_response(answer: m.VoteAnswer) -> vote.VoteResponse:
    result = vote.VotePartitionResult(
        error_code=answer.error,
        leader_id=_number(answer.leader_id),
        leader_epoch=answer.epoch,
        vote_granted=answer.is_granted,
    )
    return vote.VoteResponse(topics=[vote.VoteTopicResult(topic_name=CLUSTER_METADATA, partitions=[result])])


def read_vote_response(request: m.VoteRequest, response: vote.VoteResponse) -> m.VoteAnswer:
    _check(response.error_code)
    result: vote.VotePartitionResult = only_partition(response.topics)
    return m.VoteAnswer(
        request_id=request.request_id,
        epoch=result.leader_epoch,
        leader_id=_leader_id(result.leader_id),
        voter=request.voter,
        is_granted=result.vote_granted,
        is_pre_vote=request.is_pre_vote,
        error=ErrorCode(result.error_code),
    )


# --- BeginQuorumEpoch


def begin_request(request: m.BeginEpochRequest, cluster_id: str) -> begin.BeginQuorumEpochRequest:
    partition = begin.BeginQuorumEpochPartition(
        voter_directory_id=request.voter.directory_id, leader_id=request.leader.node_id, leader_epoch=request.epoch
    )
    topics = [begin.BeginQuorumEpochTopic(topic_name=CLUSTER_METADATA, partitions=[partition])]
    return begin.BeginQuorumEpochRequest(cluster_id=cluster_id, voter_id=request.voter.node_id, topics=topics)


def read_begin_request(request: begin.BeginQuorumEpochRequest) -> m.BeginEpochRequest:
    partition: begin.BeginQuorumEpochPartition = only_partition(request.topics)
    return m.BeginEpochRequest(
        request_id=_NO_REQUEST_ID,
        epoch=partition.leader_epoch,
        leader=VoterKey(partition.leader_id, METADATA_TOPIC_ID),  # a leader's directory is not told, nor asked for
        voter=VoterKey(request.voter_id, partition.voter_directory_id),
    )


def begin_response(answer: m.EpochAnswer) -> begin.BeginQuorumEpochResponse:
    result = begin.BeginQuorumEpochPartitionResult(
        error_code=answer.error, leader_id=_number(answer.leader_id), leader_epoch=answer.epoch
    )
    topic = begin.BeginQuorumEpochTopicResult(topic_name=CLUSTER_METADATA, partitions=[result])
    return begin.BeginQuorumEpochResponse(topics=[topic])


# --- EndQuorumEpoch


def end_request(request: m.EndEpochRequest, cluster_id: str) -> end.EndQuorumEpochRequest:
    successors = [
        end.EndQuorumEpochReplicaInfo(candidate_id=key.node_id, candidate_directory_id=key.directory_id)
        for key in request.successors
    ]
    partition = end.EndQuorumEpochPartition(
        leader_id=request.leader.node_id, leader_epoch=request.epoch, preferred_candidates=successors
    )
    topics = [end.EndQuorumEpochTopic(topic_name=CLUSTER_METADATA, partitions=[partition])]
    return end.EndQuorumEpochRequest(cluster_id=cluster_id, topics=topics)


def read_end_request(request: end.EndQuorumEpochRequest) -> m.EndEpochRequest:
    partition: end.EndQuorumEpochPartition = only_partition(request.topics)
    return m.EndEpochRequest(
        request_id=_NO_REQUEST_ID,
        epoch=partition.leader_epoch,
        leader=VoterKey(partition.leader_id, METADATA_TOPIC_ID),
        successors=tuple(
            VoterKey(each.candidate_id, each.candidate_directory_id) for each in partition.preferred_candidates
        ),
    )


def end_response(answer: m.EpochAnswer) -> end.EndQuorumEpochResponse:
    result = end.EndQuorumEpochPartitionResult(
        error_code=answer.error, leader_id=_number(answer.leader_id), leader_epoch=answer.epoch
    )
    topic = end.EndQuorumEpochTopicResult(topic_name=CLUSTER_METADATA, partitions=[result])
    return end.EndQuorumEpochResponse(topics=[topic])


def read_epoch_response(
    request: m.BeginEpochRequest | m.EndEpochRequest,
    response: begin.BeginQuorumEpochResponse | end.EndQuorumEpochResponse,
) -> m.EpochAnswer:
    _check(response.error_code)
    result = only_partition(response.topics)
    return m.EpochAnswer(
        request_id=request.request_id,
        epoch=result.leader_epoch,
        leader_id=_leader_id(result.leader_id),
        error=ErrorCode(result.error_code),
    )


# --- Fetch


def fetch_request(request: m.FetchRequest, cluster_id: str, max_wait_ms: int) -> fetch.FetchRequest:
    partition = fetch.FetchPartition(
        current_leader_epoch=request.epoch,
        fetch_offset=request.fetch_offset,
        last_fetched_epoch=request.last_epoch,
        partition_max_bytes=FETCH_BYTES_MAX,
        replica_directory_id=request.replica.directory_id,
    )
    return fetch.FetchRequest(
        cluster_id=cluster_id,
        replica_state=fetch.ReplicaState(replica_id=request.replica.node_id),
        max_wait_ms=max_wait_ms,
        max_bytes=FETCH_BYTES_MAX,
        topics=[fetch.FetchTopic(topic_id=METADATA_TOPIC_ID, partitions=[partition])],
    )


def is_metadata_fetch(request: fetch.FetchRequest) -> bool:
    return len(request.topics) == 1 and request.topics[0].topic_id == METADATA_TOPIC_ID


def read_fetch_request(request: fetch.FetchRequest) -> m.FetchRequest:
    partition: fetch.FetchPartition = only_partition(request.topics)
    return m.FetchRequest(
        request_id=_NO_REQUEST_ID,
        epoch=partition.current_leader_epoch,
        replica=VoterKey(request.replica_state.replica_id, partition.replica_directory_id),
        fetch_offset=partition.fetch_offset,
        last_epoch=partition.last_fetched_epoch,
    )


def fetch_response(answer: m.FetchAnswer, records: bytes, log_start_offset: int) -> fetch.FetchResponse:
    data = fetch.PartitionData(
        error_code=answer.error,
        high_watermark=-1 if answer.high_watermark is None else answer.high_watermark,
        log_start_offset=log_start_offset,
        current_leader=fetch.LeaderIdAndEpoch(leader_id=_number(answer.leader_id), leader_epoch=answer.epoch),
        aborted_transactions=None,
        records=[records],
    )
    if answer.diverging is not None:
        data.diverging_epoch = fetch.EpochEndOffset(
            epoch=answer.diverging.epoch, end_offset=answer.diverging.end_offset
        )
    if answer.snapshot is not None:
        data.snapshot_id = fetch.SnapshotId(end_offset=answer.snapshot.end_offset, epoch=answer.snapshot.epoch)
    topic = fetch.FetchableTopicResponse(topic_id=METADATA_TOPIC_ID, partitions=[data])
    return fetch.FetchResponse(responses=[topic])


def read_fetch_response(
    request: m.FetchRequest, data: fetch.PartitionData, entries: tuple[Entry, ...]
) -> m.FetchAnswer:
    diverging, snapshot = data.diverging_epoch, data.snapshot_id
    return m.FetchAnswer(
        request_id=request.request_id,
        epoch=data.current_leader.leader_epoch,
        leader_id=_leader_id(data.current_leader.leader_id),
        error=ErrorCode(data.error_code),
        high_watermark=None if data.high_watermark < 0 else data.high_watermark,
        diverging=None if diverging.epoch < 0 else LogPosition(diverging.epoch, diverging.end_offset),
        snapshot=None if snapshot.end_offset < 0 else LogPosition(snapshot.epoch, snapshot.end_offset),
        fetch_offset=request.fetch_offset,
        entries=entries,
    )


def fetched_partition(response: fetch.FetchResponse) -> fetch.PartitionData:
    _check(response.error_code)
    partition: fetch.PartitionData = only_partition(response.responses)
    return partition


def _check(error_code: int) -> None:
    if error_code != ErrorCode.NONE:
        raise BrokerError(ErrorCode(error_code), "the node does not answer for the metadata quorum")
