from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker_engine.security import plain
from broker_engine.security.plain import PlainError, PlainMessage, parse_plain


def test_user_and_password() -> None:
    assert parse_plain(b"\0alice\0alicepw") == PlainMessage(None, "alice", "alicepw")


def test_an_authorization_id_is_told_apart() -> None:
    assert parse_plain(b"demo:key-1\0gateway\0s") == PlainMessage("demo:key-1", "gateway", "s")


def test_the_users_own_name_as_authorization_id_counts_as_none() -> None:
    assert parse_plain(b"alice\0alice\0pw").authorization_id is None


@pytest.mark.parametrize(
    "message",
    [b"", b"alice", b"\0alice", b"\0\0pw", b"\0alice\0", b"\0a\0b\0c", b"\0\xff\0pw", b"\0a\0\xc3", b"\0" + b"u" * 257
     + b"\0p", b"\0u\0" + b"p" * 1025, b"z" * 513 + b"\0u\0p", b"\0" + b"u" * 1_000_000 + b"\0p"],
)  # fmt: skip
def test_anything_else_is_an_error(message: bytes) -> None:
    with pytest.raises(PlainError):
        parse_plain(message)


@given(st.binary(max_size=64))
def test_no_bytes_crash_the_parser(message: bytes) -> None:
    try:
        parsed = parse_plain(memoryview(message))
    except PlainError:
        return
    assert parsed.username
    assert parsed.password


def test_a_printed_message_hides_the_password() -> None:
    assert "hunter2" not in repr(parse_plain(plain.encode_plain("alice", "hunter2")))
