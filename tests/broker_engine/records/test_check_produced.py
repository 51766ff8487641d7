"""Apache Kafka's own answers to good and malformed batches, in both validation depths."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from crc32c import crc32c
from hypothesis import given
from hypothesis import strategies as st

from broker_engine.errors import BrokerError, ErrorCode
from broker_engine.records.batch import (
    BatchHeader,
    Codec,
    ProduceLimits,
    check_produced,
    compute_crc,
    pack_header,
    parse_header,
    verify_crc,
)
from broker_engine.records.builder import NewRecord, build_batch
from broker_engine.records.check import check_one_by_one

GOLDEN = Path(__file__).parents[2] / "golden" / "batches.jsonl"
VECTORS = [json.loads(line) for line in GOLDEN.read_text().splitlines()]
NOW_MS = 1_794_818_100_000
"""About when the vectors were captured."""

DECIDED_BY_THE_HANDLER = {"control+txn", "txn bit without pid"}
"""53 for the whole request, out of the header's transactional bit."""

ACCEPTED_BY_HEADER_ONLY = {
    "count 1 but 2 records",
    "codec gzip, body not gzip",
    "zstd flag v7 (body junk)",
    "record length wrong",
    "record header count -1",
    "header null key",
    "compressed bad record offset delta",
}
"""What `record.validation=header` lets in and Kafka does not: the documented difference."""


def limits_of(vector: dict[str, Any], *, validate_records: bool) -> ProduceLimits:
    config = vector["topic_config"]
    return ProduceLimits(
        max_message_bytes=int(config.get("max.message.bytes", 1_048_588)),
        is_compacted=config.get("cleanup.policy") == "compact",
        uses_log_append_time=config.get("message.timestamp.type") == "LogAppendTime",
        validate_records=validate_records,
    )


def check(vector: dict[str, Any], *, validate_records: bool) -> BrokerError | BatchHeader:
    limits = limits_of(vector, validate_records=validate_records)
    records = memoryview(bytes.fromhex(vector["records"]))
    try:
        return check_produced(records, produce_version=vector["produce_version"], limits=limits, now_ms=NOW_MS)
    except BrokerError as error:
        return error


def expect_kafkas_answer(outcome: BrokerError | BatchHeader, vector: dict[str, Any]) -> None:
    if vector["error"] == 0:
        assert isinstance(outcome, BatchHeader), outcome
        return
    assert isinstance(outcome, BrokerError), "Kafka refuses this batch"
    # Kafka's -1 is an unhandled exception of its own; any definite refusal is as good (golden README).
    expected = {87, 2} if vector["error"] == -1 else {vector["error"]}
    assert outcome.code in expected
    if "record_errors" in vector:
        assert [index for index, _ in outcome.record_errors] == vector["record_errors"]


@pytest.mark.parametrize("vector", VECTORS, ids=lambda vector: vector["name"])
def test_full_validation_answers_as_kafka(vector: dict[str, Any]) -> None:
    if vector["name"] in DECIDED_BY_THE_HANDLER:
        assert parse_header(bytes.fromhex(vector["records"])).is_transactional
        return
    expect_kafkas_answer(check(vector, validate_records=True), vector)


@pytest.mark.parametrize("vector", VECTORS, ids=lambda vector: vector["name"])
def test_header_validation_answers_as_kafka_but_for_the_listed_vectors(vector: dict[str, Any]) -> None:
    if vector["name"] in DECIDED_BY_THE_HANDLER:
        return
    outcome = check(vector, validate_records=False)
    if vector["name"] in ACCEPTED_BY_HEADER_ONLY:
        assert isinstance(outcome, BatchHeader)
    else:
        expect_kafkas_answer(outcome, vector)


def vector_named(name: str) -> dict[str, Any]:
    return next(vector for vector in VECTORS if vector["name"] == name)


def test_bytes_after_the_batch_are_not_part_of_it() -> None:
    vector = vector_named("batch + trailing garbage")
    outcome = check(vector, validate_records=False)
    assert isinstance(outcome, BatchHeader)
    assert outcome.size_bytes == len(vector["records"]) // 2 - len(b"xyz")


@pytest.mark.parametrize("validate_records", [True, False])
def test_a_timestamp_type_bit_set_by_the_client_is_cleared(validate_records: bool) -> None:
    vector = vector_named("timestamp type bit set by client")
    outcome = check(vector, validate_records=validate_records)
    assert isinstance(outcome, BatchHeader)
    assert not outcome.has_log_append_time
    assert verify_crc(pack_header(outcome) + bytes.fromhex(vector["records"])[61:])


def test_a_wrong_max_timestamp_is_put_right_where_records_are_walked() -> None:
    vector = vector_named("maxTimestamp wrong")
    repaired = check(vector, validate_records=True)
    as_sent = check(vector, validate_records=False)
    assert isinstance(repaired, BatchHeader)
    assert isinstance(as_sent, BatchHeader)
    assert repaired.max_timestamp == repaired.base_timestamp
    assert verify_crc(pack_header(repaired) + bytes.fromhex(vector["records"])[61:])
    assert as_sent.max_timestamp == 5


def refused(batch: bytes, *, limits: ProduceLimits | None = None, produce_version: int = 9) -> BrokerError:
    with pytest.raises(BrokerError) as raised:
        check_produced(
            memoryview(batch), produce_version=produce_version, limits=limits or ProduceLimits(), now_ms=NOW_MS
        )
    return raised.value


def test_a_timestamp_far_ahead_is_refused_by_its_record_in_both_depths() -> None:
    records = [NewRecord(NOW_MS, b"k", b"v"), NewRecord(NOW_MS + 3_600_001, b"k", b"v")]
    walked = refused(build_batch(records), limits=ProduceLimits(validate_records=True))
    assert (walked.code, [index for index, _ in walked.record_errors]) == (ErrorCode.INVALID_TIMESTAMP, [1])
    assert refused(build_batch(records)).code == ErrorCode.INVALID_TIMESTAMP


def test_a_timestamp_far_behind_is_refused_where_the_topic_bounds_it() -> None:
    limits = ProduceLimits(timestamp_before_ms_max=1000)
    error = refused(build_batch([NewRecord(NOW_MS - 1001, None, b"v")]), limits=limits)
    assert (error.code, len(error.record_errors)) == (ErrorCode.INVALID_TIMESTAMP, 1)


def test_a_producer_id_needs_a_sequence() -> None:
    batch = build_batch([NewRecord(NOW_MS, None, b"v")], producer_id=7, producer_epoch=0)
    assert refused(batch).code == ErrorCode.INVALID_RECORD


def test_a_decompression_bomb_is_refused() -> None:
    batch = build_batch([NewRecord(NOW_MS, None, bytes(10 << 20))], codec=Codec.ZSTD)
    limits = ProduceLimits(validate_records=True, decompressed_bytes_max=1 << 20)
    assert refused(batch, limits=limits).code == ErrorCode.MESSAGE_TOO_LARGE


def test_more_records_than_the_bytes_could_hold_are_refused_without_a_walk() -> None:
    batch = build_batch([NewRecord(NOW_MS, None, b"v")])
    header = parse_header(batch)._replace(record_count=1_000_000, last_offset_delta=999_999)
    forged = pack_header(header._replace(crc=compute_crc(header, batch[61:]))) + batch[61:]
    assert refused(forged).code == ErrorCode.INVALID_RECORD


# --- the short look at batches that have nothing to put right


@given(
    position=st.integers(0, 60),
    value=st.integers(0, 255),
    is_sealed=st.booleans(),
    version=st.sampled_from([6, 9]),
    codec=st.sampled_from([0, 1, 4]),
)
def test_a_short_look_finds_what_the_checks_one_by_one_find(
    position: int, value: int, is_sealed: bool, version: int, codec: int
) -> None:
    """With one byte of the header changed, and a CRC that says so or does not."""
    batch = bytearray(build_batch([NewRecord(NOW_MS, b"k", b"v" * 40)] * 3, codec=codec))
    batch[position] = value
    if is_sealed:
        batch[17:21] = crc32c(bytes(batch[21:])).to_bytes(4, "big")
    view, limits = memoryview(bytes(batch)), ProduceLimits()
    try:
        expected: object = check_one_by_one(view, produce_version=version, limits=limits, now_ms=NOW_MS)
    except BrokerError as error:
        expected = (error.code, error.message)
    try:
        found: object = check_produced(view, produce_version=version, limits=limits, now_ms=NOW_MS)
    except BrokerError as error:
        found = (error.code, error.message)
    assert found == expected
