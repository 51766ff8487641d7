"""What members tell each other: Kafka's bytes, and the range assignor's shares."""

from __future__ import annotations

import pytest

from broker_engine.client import KafkaError, TopicPartition
from broker_engine.client.group_protocol import (
    JoinedMember,
    Subscription,
    assign_ranges,
    decode_assignment,
    decode_subscription,
    encode_assignment,
    encode_subscription,
)

SUBSCRIPTION_V1 = bytes.fromhex(
    "0001"  # version
    "00000001" "0006" "6f7264657273"  # topics: orders
    "ffffffff"  # no user data
    "00000001" "0006" "6f7264657273" "00000002" "00000000" "00000003"  # owned: orders 0 and 3
)  # fmt: skip
ASSIGNMENT_V1 = bytes.fromhex("0001" "00000001" "0006" "6f7264657273" "00000001" "00000002" "ffffffff")  # fmt: skip
OWNED = (TopicPartition("orders", 0), TopicPartition("orders", 3))


def test_a_subscription_is_kafkas_bytes() -> None:
    subscription = Subscription(("orders",), OWNED)
    assert encode_subscription(subscription) == SUBSCRIPTION_V1
    assert decode_subscription(SUBSCRIPTION_V1) == subscription


def test_older_and_newer_subscriptions_are_read() -> None:
    oldest = b"\0\0" + SUBSCRIPTION_V1[2:18]
    assert decode_subscription(oldest) == Subscription(("orders",))
    newest = b"\0\3" + SUBSCRIPTION_V1[2:] + bytes.fromhex("00000007" "ffff")  # fmt: skip
    assert decode_subscription(newest) == Subscription(("orders",), OWNED)


def test_an_assignment_is_kafkas_bytes() -> None:
    assert encode_assignment([TopicPartition("orders", 2)]) == ASSIGNMENT_V1
    assert decode_assignment(ASSIGNMENT_V1) == (TopicPartition("orders", 2),)
    assert decode_assignment(b"") == ()


@pytest.mark.parametrize("cut", range(1, len(SUBSCRIPTION_V1)))
def test_a_subscription_that_is_cut_off_is_refused_by_name(cut: int) -> None:
    if cut == 18:
        return  # the end of version 0
    with pytest.raises(KafkaError):
        decode_subscription(SUBSCRIPTION_V1[:cut])


def test_a_count_beyond_the_bytes_is_refused_before_anything_is_made() -> None:
    with pytest.raises(KafkaError):
        decode_subscription(bytes.fromhex("0001" "7fffffff" "0001"))  # fmt: skip


def shares(counts: dict[str, int], *members: JoinedMember) -> dict[str, list[tuple[str, int]]]:
    assigned = assign_ranges(members, counts)
    return {member: [(topic, index) for topic, index in partitions] for member, partitions in assigned.items()}


def test_the_first_members_get_one_more_where_it_does_not_come_out_even() -> None:
    assert shares({"t": 5}, JoinedMember("b", None, ("t",)), JoinedMember("a", None, ("t",))) == {
        "a": [("t", 0), ("t", 1), ("t", 2)],
        "b": [("t", 3), ("t", 4)],
    }


def test_only_who_subscribes_to_a_topic_gets_of_it() -> None:
    assert shares({"t": 2, "u": 1}, JoinedMember("a", None, ("t",)), JoinedMember("b", None, ("t", "u"))) == {
        "a": [("t", 0)],
        "b": [("t", 1), ("u", 0)],
    }


def test_more_members_than_partitions_leave_some_with_nothing() -> None:
    assert shares({"t": 1}, JoinedMember("a", None, ("t",)), JoinedMember("b", None, ("t",))) == {
        "a": [("t", 0)],
        "b": [],
    }


def test_static_members_stand_by_their_instance() -> None:
    members = (JoinedMember("z", "one", ("t",)), JoinedMember("a", None, ("t",)), JoinedMember("y", "two", ("t",)))
    assert shares({"t": 3}, *members) == {"z": [("t", 0)], "y": [("t", 1)], "a": [("t", 2)]}
