"""The quorum's messages over the wire: what is read is what was said."""

from __future__ import annotations

from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker_engine.errors import BrokerError, ErrorCode
from broker_engine.quorum import messages as m
from broker_engine.quorum.election_state import VoterKey
from broker_engine.quorum.log_index import LogPosition
from broker_engine.quorum.ready import Entry
from broker_engine.records.builder import NewRecord, build_batch
from broker_engine.records.compression import CorruptBatch
from broker_engine.server import raft_wire as w
from broker_engine.server.metadata_log import parse_entries
from broker_engine.wire.messages import begin_quorum_epoch, end_quorum_epoch, fetch, vote

CLUSTER = "7HTkda7NT8G9tbSj9lL1Kw"
NUMBERS = st.integers(0, (1 << 31) - 1)
KEYS = st.builds(VoterKey, st.integers(0, 999), st.uuids())
POSITIONS = st.builds(LogPosition, NUMBERS, st.integers(0, (1 << 62)))
LEADERS = st.none() | st.integers(0, 999)


@given(st.builds(m.VoteRequest, request_id=st.just(0), epoch=NUMBERS, candidate=KEYS, voter=KEYS, last=POSITIONS,
                 is_pre_vote=st.booleans()))  # fmt: skip
def test_a_vote_request(request: m.VoteRequest) -> None:
    sent = w.vote_request(request, CLUSTER).encode(2)
    assert w.read_vote_request(vote.VoteRequest.decode(sent, 2)) == request


@given(NUMBERS, LEADERS, st.booleans())
def test_a_vote_answer(epoch: int, leader_id: int | None, is_granted: bool) -> None:
    key = VoterKey(2, UUID(int=2))
    request = m.VoteRequest(request_id=7, epoch=1, candidate=key, voter=key, last=LogPosition(0, 0), is_pre_vote=True)
    answer = m.VoteAnswer(
        request_id=7, epoch=epoch, leader_id=leader_id, voter=key, is_granted=is_granted, is_pre_vote=True
    )
    sent = w.vote_response(answer).encode(2)
    assert w.read_vote_response(request, vote.VoteResponse.decode(sent, 2)) == answer


@given(NUMBERS, KEYS, KEYS, st.lists(KEYS, max_size=4), LEADERS)
def test_beginning_and_ending_an_epoch(
    epoch: int, leader: VoterKey, voter: VoterKey, successors: list[VoterKey], leader_id: int | None
) -> None:
    begun = m.BeginEpochRequest(request_id=0, epoch=epoch, leader=leader, voter=voter)
    read = w.read_begin_request(
        begin_quorum_epoch.BeginQuorumEpochRequest.decode(w.begin_request(begun, CLUSTER).encode(1), 1)
    )
    assert (read.epoch, read.leader.node_id, read.voter) == (epoch, leader.node_id, voter)
    ended = m.EndEpochRequest(request_id=0, epoch=epoch, leader=leader, successors=tuple(successors))
    said = w.read_end_request(end_quorum_epoch.EndQuorumEpochRequest.decode(w.end_request(ended, CLUSTER).encode(1), 1))
    assert (said.epoch, said.leader.node_id, said.successors) == (epoch, leader.node_id, tuple(successors))
    answer = m.EpochAnswer(request_id=0, epoch=epoch, leader_id=leader_id, error=ErrorCode.FENCED_LEADER_EPOCH)
    sent = w.end_response(answer).encode(1)
    assert w.read_epoch_response(ended, end_quorum_epoch.EndQuorumEpochResponse.decode(sent, 1)) == answer


@given(st.builds(m.FetchRequest, request_id=st.just(0), epoch=NUMBERS, replica=KEYS,
                 fetch_offset=st.integers(0, 1 << 62), last_epoch=NUMBERS))  # fmt: skip
def test_a_fetch_request(request: m.FetchRequest) -> None:
    sent = fetch.FetchRequest.decode(w.fetch_request(request, CLUSTER, 500).encode(17), 17)
    assert w.is_metadata_fetch(sent)
    assert w.read_fetch_request(sent) == request


@given(st.none() | POSITIONS, st.none() | POSITIONS, st.none() | st.integers(0, 1 << 62), LEADERS, NUMBERS)
def test_a_fetch_answer(
    diverging: LogPosition | None,
    snapshot: LogPosition | None,
    high_watermark: int | None,
    leader_id: int | None,
    epoch: int,
) -> None:
    request = m.FetchRequest(request_id=5, epoch=1, replica=VoterKey(1, UUID(int=1)), fetch_offset=3, last_epoch=1)
    answer = m.FetchAnswer(
        request_id=5,
        epoch=epoch,
        leader_id=leader_id,
        high_watermark=high_watermark,
        diverging=diverging,
        snapshot=snapshot,
        fetch_offset=3,
    )
    sent = fetch.FetchResponse.decode(w.fetch_response(answer, b"", 0).encode(17), 17)
    assert w.read_fetch_response(request, w.fetched_partition(sent), ()) == answer


def test_entries_are_read_from_whole_batches_only() -> None:
    first = build_batch([NewRecord(0, None, b"a"), NewRecord(0, None, b"b")], base_offset=5, leader_epoch=3)
    second = build_batch([NewRecord(0, b"\x00\x00\x00\x02", b"c")], base_offset=7, leader_epoch=4, is_control=True)
    entries = list(parse_entries(first + second + first[:40]))
    assert entries == [Entry(3, 5, (b"a", b"b")), Entry(4, 7, (b"c",), b"\x00\x00\x00\x02")]
    assert [entry.batch for entry in entries] == [first, second]


def test_a_flipped_bit_on_the_way_is_no_entry() -> None:
    batch = bytearray(build_batch([NewRecord(0, None, b"value")], base_offset=5, leader_epoch=3))
    batch[-1] ^= 1
    with pytest.raises(CorruptBatch):
        list(parse_entries(bytes(batch)))


def test_another_cluster_is_told_so() -> None:
    w.check_cluster(None, CLUSTER)
    w.check_cluster(CLUSTER, CLUSTER)
    with pytest.raises(BrokerError) as caught:
        w.check_cluster("another", CLUSTER)
    assert caught.value.code is ErrorCode.INCONSISTENT_CLUSTER_ID


def test_an_error_of_the_whole_answer_is_none_of_a_vote() -> None:
    key = VoterKey(1, UUID(int=1))
    request = m.VoteRequest(request_id=1, epoch=1, candidate=key, voter=key, last=LogPosition(0, 0), is_pre_vote=False)
    with pytest.raises(BrokerError):
        w.read_vote_response(request, vote.VoteResponse(error_code=ErrorCode.INCONSISTENT_CLUSTER_ID))
