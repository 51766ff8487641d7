"""Bytes into frames, however they are cut."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker_engine.client.config import ClientConfig, PlainCredentials, parse_address
from broker_engine.client.frames import FrameReader, FrameTooLarge


@given(st.lists(st.binary(min_size=1, max_size=50), max_size=8), st.integers(min_value=1, max_value=40))
def test_frames_come_out_whole_however_the_bytes_were_cut(frames: list[bytes], piece_bytes: int) -> None:
    stream = b"".join(len(frame).to_bytes(4, "big") + frame for frame in frames)
    reader = FrameReader(1_000)
    got: list[bytes] = []
    for start in range(0, len(stream), piece_bytes):
        got += map(bytes, reader.feed(memoryview(stream[start : start + piece_bytes])))

    assert got == frames


@pytest.mark.parametrize("length", [-1, 0, 1_001])
def test_a_length_that_cannot_be_is_refused_before_memory_is_taken(length: int) -> None:
    with pytest.raises(FrameTooLarge):
        FrameReader(1_000).feed(memoryview(length.to_bytes(4, "big", signed=True)))


@pytest.mark.parametrize("text", ["localhost", "localhost:", ":9092", "localhost:0", "localhost:99999", "a:b"])
def test_a_bad_address_says_how_to_write_one(text: str) -> None:
    with pytest.raises(ValueError, match="write host:port"):
        ClientConfig(bootstrap=(text,))


def test_an_ipv6_address_is_taken_in_brackets() -> None:
    address = parse_address("[::1]:9092")

    assert (address.host, address.port, str(address)) == ("::1", 9092, "[::1]:9092")


def test_a_password_is_not_shown() -> None:
    assert "hunter2" not in repr(PlainCredentials("alice", "hunter2"))


def test_plain_tokens_carry_the_authorization_id_first() -> None:
    assert PlainCredentials("gateway", "pw", "demo:key-1").token() == b"demo:key-1\0gateway\0pw"
    with pytest.raises(ValueError, match="zero byte"):
        PlainCredentials("a\0b", "pw").token()
