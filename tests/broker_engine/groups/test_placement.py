"""A group's partition is the one that Kafka's tools compute."""

from __future__ import annotations

import pytest

from broker_engine.groups.placement import group_partition, java_hash


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", 0),
        ("a", 97),
        ("hello", 99162322),
        # Java's hash of this one is -2147483648: the sign bit is masked, Math.abs would leave it negative.
        ("polygenelubricants", 0),
        ("\N{GRINNING FACE}", 1772899),
        ("\0" * 300 + "hello", 99162322),
    ],
)
def test_the_hash_is_javas_with_the_sign_bit_masked(text: str, expected: int) -> None:
    assert java_hash(text) == expected


def test_the_tenant_is_part_of_what_is_hashed() -> None:
    assert group_partition("readers", 50) != group_partition("acme/readers", 50)
