"""Bodies that users send, good and bad."""

from __future__ import annotations

import json
from typing import Any

import pytest

from api.gateway.produce_body import BodyError, ProduceRecord, TooManyRecords, parse_json, parse_ndjson


def one(record: dict[str, Any] | str) -> ProduceRecord:
    text = record if isinstance(record, str) else json.dumps(record)
    return parse_json(f"[{text}]".encode()).records[0]


def refusal(body: str | bytes) -> tuple[str, str]:
    with pytest.raises(BodyError) as caught:
        parse_json(body.encode() if isinstance(body, str) else body)
    return caught.value.field, caught.value.message


def test_json_keeps_the_digits_and_blanks_that_were_sent() -> None:
    text = '{"id": 9007199254740993,  "price": 1.10, "name": "\\u00e9"}'
    assert one(f'{{"value": {text}}}').value == text.encode()
    assert one(f'{{"value": {{"data": {text}, "type": "JSON"}}}}').value == text.encode()


def test_a_string_is_stored_as_its_bytes() -> None:
    assert one({"key": "o-17", "value": {"type": "STRING", "data": "grün"}}) == ProduceRecord(b"o-17", "grün".encode())


def test_binary_is_base64() -> None:
    assert one({"value": {"type": "BINARY", "data": "AAECAw=="}}).value == b"\x00\x01\x02\x03"


@pytest.mark.parametrize("record", [{}, {"value": None, "key": None}, {"value": {"type": "BINARY", "data": None}}])
def test_absent_and_null_are_kafkas_null(record: dict[str, Any]) -> None:
    assert one(record).value is None


def test_json_null_can_be_stored_by_its_envelope() -> None:
    assert one({"value": {"type": "JSON", "data": None}}).value == b"null"


def test_an_object_that_merely_resembles_an_envelope_is_stored_as_it_is() -> None:
    assert one('{"value":{"type":"created","data":1}}').value == b'{"type":"created","data":1}'
    assert one('{"value":{"type":"JSON"}}').value == b'{"type":"JSON"}'


def test_partition_timestamp_and_headers() -> None:
    record = one(
        {"partition": 2, "timestamp": 17, "headers": [{"name": "src", "value": "d2Vi"}, {"name": "x", "value": None}]}
    )
    assert record == ProduceRecord(None, None, (("src", b"web"), ("x", None)), 2, 17)


def test_object_form_with_acks() -> None:
    parsed = parse_json(b'{"acks": "none", "records": [{"value": 1}, {"value": 2}]}')
    assert parsed.acks == 0
    assert [record.value for record in parsed.records] == [b"1", b"2"]


def test_ndjson_skips_blank_lines_and_names_the_bad_one() -> None:
    assert [r.value for r in parse_ndjson([b'{"value": 1}', b"", b'{"value": 2}\r']).records] == [b"1", b"2"]
    with pytest.raises(BodyError) as caught:
        parse_ndjson([b'{"value": 1}', b'{"valeu": 2}'])
    assert caught.value.field == "line 2.valeu"


@pytest.mark.parametrize(
    ("body", "field", "message"),
    [
        ('[{"value": 1, "topic": "x"}]', "[0].topic", "unknown field"),
        ('{"records": [{}, {"partition": "1"}]}', "records[1].partition", "whole number"),
        ('{"records": [{"partition": true}]}', "records[0].partition", "whole number"),
        ('{"records": [{"partition": -1}]}', "records[0].partition", "between 0"),
        ('{"records": [{"timestamp": 1.5}]}', "records[0].timestamp", "whole number"),
        ('{"records": {}}', "records", "array"),
        ('{"acks": "all"}', "records", "missing"),
        ('{"records": [], "acks": 1}', "acks", "one of all, leader, none"),
        ('{"records": [], "ack": "all"}', "ack", "unknown field"),
        ('[{"value": {"type": "AVRO", "data": 1}}]', "[0].value.type", "STRING, JSON, BINARY"),
        ('[{"value": {"type": "STRING", "data": 1}}]', "[0].value.data", "must be a string"),
        ('[{"value": {"type": "BINARY", "data": "?"}}]', "[0].value.data", "not base64"),
        ('[{"headers": {"a": "b"}}]', "[0].headers", "array"),
        ('[{"headers": [{"name": "a", "value": 1}]}]', "[0].headers[0].value", "base64 text or null"),
        ('[{"headers": [{"value": "YQ=="}]}]', "[0].headers[0].name", "string"),
        ('[{"key": "\\ud800"}]', "[0].key", "surrogate"),
        ('[{"value": NaN}]', "", "NaN is not JSON"),
        ('[{"value": [Infinity]}]', "", "Infinity is not JSON"),
        ('[{"value": 1, "value": 2}]', "", "'value' is given twice"),
        ('[{"value": {"a": 1, "a": 2}}]', "", "'a' is given twice"),
        ("[1]", "[0]", "must be an object"),
        ('"hello"', "", "expected an array of records"),
        ("", "", "expected an array of records"),
        ('[{"value": 1}', "", "expected"),
        ('[{"value": 1}] x', "", "something follows"),
        ('[{"value": 1},]', "[1]", "must be an object"),
        ('[{"value": ' + "[" * 10_000 + "]" * 10_000 + "}]", "", "nested more than 64 deep"),
        ('[{"value": ' + "[" * 65 + "]" * 65 + "}]", "", "nested more than 64 deep"),
        ('[{"value": ' + "9" * 5000 + "}]", "", "too long"),
        (b'[{"value": "\xff"}]', "", "not UTF-8 at byte 12"),
    ],
)
def test_a_refusal_names_the_field(body: str | bytes, field: str, message: str) -> None:
    refused_field, refused_message = refusal(body)
    assert refused_field == field
    assert message in refused_message


def test_brackets_inside_strings_are_not_nesting() -> None:
    text = json.dumps(["[" * 500 + '\\"{'] * 3)
    assert one(f'{{"value": {text}}}').value == text.encode()


def test_a_thousand_records_and_no_more() -> None:
    assert len(parse_json(json.dumps([{}] * 1000).encode()).records) == 1000
    with pytest.raises(TooManyRecords):
        parse_json(json.dumps([{}] * 1001).encode())
    with pytest.raises(TooManyRecords):
        parse_ndjson([b"{}"] * 1001)
