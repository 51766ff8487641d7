"""Records of groups of the consumer protocol are Kafka's, byte for byte."""

from __future__ import annotations

import struct
from typing import Any
from uuid import UUID

import pytest

from broker_engine.groups.consumer.member import ClassicFacts, MemberState, Standing, Subscription
from broker_engine.groups.consumer.records import (
    GROUP_EPOCH,
    NUMBERS,
    REGEX,
    STANDING,
    SUBSCRIPTION,
    TARGET,
    TARGET_EPOCH,
    ConsumerRecord,
    GroupEpoch,
    Key,
    Regex,
    TargetEpoch,
    decode_consumer_key,
    decode_consumer_value,
    encode,
)
from broker_engine.wire.errors import WireError
from tests.broker_engine.groups.test_records import kafkas_records

TOPIC = UUID(int=7)


def number_of(data: bytes) -> int:
    return int(struct.unpack_from(">h", data)[0])


def read(key: bytes, value: bytes | None) -> ConsumerRecord:
    decoded = decode_consumer_key(number_of(key), key[2:])
    return ConsumerRecord(decoded, None if value is None else decode_consumer_value(decoded, value))


def test_what_kafka_wrote_is_read_and_written_again_to_the_same_bytes() -> None:
    written = [(key, value) for key, value in kafkas_records() if number_of(key) in NUMBERS]
    assert len(written) == 9, "the golden segment has nine records of a group of the consumer protocol"
    assert [encode(read(key, value)) for key, value in written] == written


@pytest.mark.parametrize(
    ("number", "value"),
    [
        (GROUP_EPOCH, GroupEpoch(3, -9)),
        (TARGET_EPOCH, TargetEpoch(4, 12)),
        (TARGET, {TOPIC: frozenset({0, 3})}),
        (REGEX, Regex(("a", "b"), 5, 6)),
        (SUBSCRIPTION, Subscription(topic_names=frozenset({"x", "y"}), topic_regex="z.*", server_assignor="range")),
        (SUBSCRIPTION, Subscription(instance_id="i", classic=ClassicFacts(10_000, (("range", b"\0\1"),)))),
        (
            STANDING,
            Standing(
                epoch=5,
                previous_epoch=4,
                state=MemberState.UNREVOKED_PARTITIONS,
                assigned={TOPIC: {1: 2, 4: 5}},
                revoking={TOPIC: {0: 2}},
            ),
        ),
    ],
)
def test_a_record_is_read_as_it_was_written(number: int, value: Any) -> None:
    record = ConsumerRecord(Key(number, "acme/readers", "m" if number in (5, 7, 8, 16) else ""), value)
    assert read(*encode(record)) == record


def test_partitions_without_epochs_are_of_the_members_own_epoch() -> None:
    value = b"\0\0\0\0\0\x09\0\0\0\x08\0\x02" + TOPIC.bytes + b"\x02\0\0\0\x03\0\x01\0"
    standing = decode_consumer_value(Key(STANDING, "g", "m"), value)
    assert standing.assigned == {TOPIC: {3: 9}}


def test_a_state_that_nobody_knows_is_unknown() -> None:
    value = b"\0\0\0\0\0\x09\0\0\0\x08\x63\x01\x01\0"
    assert decode_consumer_value(Key(STANDING, "g", "m"), value).state is MemberState.UNKNOWN


@pytest.mark.parametrize("value", [b"", b"\0", b"\0\x09\0", b"\0\0\xff"])
def test_a_value_that_cannot_be_read_says_so(value: bytes) -> None:
    for number in (GROUP_EPOCH, SUBSCRIPTION, TARGET_EPOCH, TARGET, STANDING, REGEX):
        with pytest.raises(WireError):
            decode_consumer_value(Key(number, "g", "m"), value)
