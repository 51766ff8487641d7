"""Records of `__consumer_offsets` are Kafka's, byte for byte."""

from __future__ import annotations

from pathlib import Path

import pytest

from broker_engine.groups.consumer.records import Key
from broker_engine.groups.records import (
    GroupKey,
    OffsetKey,
    UnknownGroupRecord,
    decode_group,
    decode_key,
    decode_offset,
    group_record,
    offset_record,
)
from broker_engine.records.batch import decode_records, iter_batches, parse_header

SEGMENT = Path(__file__).parents[2] / "golden/segments/__consumer_offsets-0/00000000000000000000.log"


def kafkas_records() -> list[tuple[bytes, bytes | None]]:
    batches = [batch for batch in iter_batches(SEGMENT.read_bytes()) if not parse_header(batch).is_control]
    records = [record for batch in batches for record in decode_records(batch, max_bytes=1 << 20)]
    return [(record.key or b"", record.value) for record in records]


def test_what_kafka_wrote_is_read_and_written_again_to_the_same_bytes() -> None:
    count = 0
    for key, value in kafkas_records():
        try:
            decoded = decode_key(key)
        except UnknownGroupRecord:
            continue
        if isinstance(decoded, Key):
            continue  # test_consumer_records.py
        count += 1
        if isinstance(decoded, OffsetKey):
            ours = offset_record(decoded, None if value is None else decode_offset(value))
        else:
            assert isinstance(decoded, GroupKey)
            ours = group_record(decoded.group, None if value is None else decode_group(value))
        assert (ours.key, ours.value) == (key, value)
    assert count == 21, "the golden segment has 21 records of classic groups and offsets"


def test_a_key_of_a_type_that_we_do_not_keep_says_its_type() -> None:
    with pytest.raises(UnknownGroupRecord, match="type 11"):
        decode_key(b"\0\x0b\0\1g")


@pytest.mark.parametrize("data", [b"", b"\0", b"\0\1", b"\0\1\0\5abc", b"\0\2\x7f\xff"])
def test_a_key_that_is_cut_short_is_none(data: bytes) -> None:
    with pytest.raises(UnknownGroupRecord):
        decode_key(data)


@pytest.mark.parametrize("data", [b"", b"\0\4", b"\0\x63abc", b"\0\3\0\0"])
def test_a_value_that_cannot_be_read_says_so(data: bytes) -> None:
    with pytest.raises(UnknownGroupRecord):
        decode_group(data)
    with pytest.raises(UnknownGroupRecord):
        decode_offset(data)


def test_a_group_key_holds_the_physical_name() -> None:
    decoded = decode_key(group_record("acme/readers", None).key)
    assert isinstance(decoded, GroupKey)
    assert decoded.group == "acme/readers"
