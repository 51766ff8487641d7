"""Bytes that clients write for each other: read where they can be, never trusted."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker_engine.groups.consumer_protocol import read_assignment, read_subscription, write_assignment


@pytest.mark.parametrize("version", [-1, 0, 1, 3, 7])
def test_an_assignment_is_read_as_it_was_written(version: int) -> None:
    data = write_assignment({"orders": [2, 0], "bills": [1]}, version)
    assert read_assignment(data) == {"bills": (1,), "orders": (0, 2)}


def test_a_subscription_of_each_version_is_read() -> None:
    topics = b"\0\0\0\1\0\6orders"
    nothing = b"\xff\xff\xff\xff"
    owned = b"\0\0\0\1\0\6orders\0\0\0\1\0\0\0\5"
    first = read_subscription(b"\0\0" + topics + nothing)
    assert first is not None
    assert list(first.topics) == ["orders"]
    third = read_subscription(b"\0\3" + topics + nothing + owned + b"\0\0\0\7" + b"\0\4east")
    assert third is not None
    assert (third.generation_id, third.rack_id, list(third.owned_partitions[0].partitions)) == (7, "east", [5])
    newer = read_subscription(b"\0\x09" + topics + nothing + owned + b"\0\0\0\7" + b"\0\4east" + b"more")
    assert newer == third


def test_no_bytes_are_an_empty_assignment_and_no_subscription() -> None:
    assert read_assignment(b"") == {}
    assert read_subscription(b"") is None


def test_an_array_that_claims_more_than_there_is_is_not_believed() -> None:
    assert read_assignment(b"\0\1\x7f\xff\xff\xff") is None
    assert read_subscription(b"\0\1\x7f\xff\xff\xff") is None
    assert read_assignment(b"\0\1" + b"\0" * (2 << 20)) is None, "too long to be worth it"


@given(st.binary(max_size=200))
def test_any_bytes_at_all_do_no_harm(data: bytes) -> None:
    read_assignment(data)
    read_subscription(data)
