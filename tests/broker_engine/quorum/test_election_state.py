from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker_engine.quorum.election_state import (
    ElectionState,
    ElectionStateError,
    VoterKey,
    decode_election_state,
    encode_election_state,
)

STATES = st.builds(
    ElectionState,
    epoch=st.integers(0, (1 << 31) - 1),
    leader_id=st.integers(-1, 9),
    voted_for=st.none() | st.builds(VoterKey, st.integers(0, 9), st.uuids()),
)


@given(STATES)
def test_a_state_survives_its_file(state: ElectionState) -> None:
    assert decode_election_state(encode_election_state(state)) == state


def test_the_file_has_kafkas_fields() -> None:
    fields = json.loads(encode_election_state(ElectionState(5, 1)))
    assert fields.pop("crc")
    assert fields == {
        "leaderId": 1, "leaderEpoch": 5, "votedId": -1, "votedDirectoryId": "AAAAAAAAAAAAAAAAAAAAAA", "data_version": 1
    }  # fmt: skip


@given(STATES, st.data())
def test_a_flipped_bit_is_found(state: ElectionState, data: st.DataObject) -> None:
    damaged = bytearray(encode_election_state(state))
    damaged[data.draw(st.integers(0, len(damaged) - 1))] ^= 1 << data.draw(st.integers(0, 6))
    try:
        assert decode_election_state(bytes(damaged)) == state  # JSON has blanks and escapes that mean nothing
    except ElectionStateError:
        return


@pytest.mark.parametrize("data", [b"", b"{}", b"[]", b"null", b"5", b'{"crc": 1}', b"\xff", b"[" * 100_000])
def test_anything_else_stops_the_node(data: bytes) -> None:
    with pytest.raises(ElectionStateError):
        decode_election_state(data)
