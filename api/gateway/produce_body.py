"""A produce request's body as records. Pure: text in, records out, BodyError with the field's name.

Three forms: an array of records, `{"records": [...], "acks": "all"}`, and NDJSON, one record per line. A record is
`{key?, value?, headers?, partition?, timestamp?}`. Key and value are null or absent (Kafka's null), a bare JSON value
(a string is stored as its UTF-8 bytes, anything else as its own JSON text), or an envelope
`{"type": "STRING|JSON|BINARY", "data": ...}`.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Literal

from api.gateway.json_text import JsonCursor, JsonError, JsonValue

RECORDS_MAX = 1000
BODY_BYTES_MAX = 5 << 20
INT64_MAX = (1 << 63) - 1
INT32_MAX = (1 << 31) - 1
Acks = Literal[-1, 0, 1]
ACKS: dict[str, Acks] = {"all": -1, "leader": 1, "none": 0}
ENVELOPE_TYPES = ("STRING", "JSON", "BINARY")
RECORD_FIELDS = ("key", "value", "headers", "partition", "timestamp")
_ENVELOPE_TYPE = re.compile(r"[A-Z]+")


class BodyError(ValueError):
    """The body is refused; `field` says where (empty: the body as a whole)."""

    def __init__(self, field_name: str, message: str) -> None:
        super().__init__(message)
        self.field = field_name
        self.message = message


class TooManyRecords(BodyError):  # noqa: N818 - reads as the sentence it is
    """More records than one request may carry."""


@dataclass(frozen=True, slots=True)
class ProduceRecord:
    key: bytes | None = None
    value: bytes | None = None
    headers: tuple[tuple[str, bytes | None], ...] = ()
    partition: int | None = None
    timestamp_ms: int | None = None


@dataclass(slots=True)
class ProduceBody:
    records: list[ProduceRecord] = field(default_factory=list)
    acks: Acks | None = None

    def add(self, record: ProduceRecord) -> None:
        if len(self.records) == RECORDS_MAX:
            raise TooManyRecords("records", f"at most {RECORDS_MAX} records per request")
        self.records.append(record)


def parse_json(body: bytes) -> ProduceBody:
    """The array form or the object form."""
    try:
        cursor = JsonCursor(_text(body))
        parsed = ProduceBody()
        if cursor.peek() == "[":
            _take_records(cursor, parsed, "")
        elif cursor.peek() == "{":
            _take_request(cursor, parsed)
        else:
            raise BodyError("", "expected an array of records or an object with `records`")
        cursor.end()
    except JsonError as error:
        raise BodyError("", str(error)) from None
    return parsed


def parse_ndjson(lines: Iterable[bytes]) -> ProduceBody:
    parsed = ProduceBody()
    for number, line in enumerate(lines, start=1):
        if line.strip():
            parsed.add(_parse_line(line, f"line {number}"))
    return parsed


def parse_acks(text: object, field_name: str = "acks") -> Acks:
    if not isinstance(text, str) or text not in ACKS:
        raise BodyError(field_name, f"must be one of {', '.join(ACKS)}")
    return ACKS[text]


def _text(body: bytes) -> str:
    try:
        return body.decode("utf-8")
    except UnicodeDecodeError as error:
        raise BodyError("", f"not UTF-8 at byte {error.start}") from None


def _parse_line(line: bytes, path: str) -> ProduceRecord:
    try:
        cursor = JsonCursor(_text(line))
        record = _take_record(cursor, path)
        cursor.end()
    except JsonError as error:
        raise BodyError(path, str(error)) from None
    return record


def _take_request(cursor: JsonCursor, parsed: ProduceBody) -> None:
    names: set[str] = set()
    for name in cursor.members():
        names.add(name)
        if name == "records":
            _take_records(cursor, parsed, "records")
        elif name == "acks":
            parsed.acks = parse_acks(cursor.value().decoded)
        else:
            raise BodyError(name, "unknown field; known are records and acks")
    if "records" not in names:
        raise BodyError("records", "missing")


def _take_records(cursor: JsonCursor, parsed: ProduceBody, path: str) -> None:
    if cursor.peek() != "[":
        raise BodyError(path, "must be an array")
    for index in cursor.elements():
        parsed.add(_take_record(cursor, f"{path}[{index}]"))


def _take_record(cursor: JsonCursor, path: str) -> ProduceRecord:
    if cursor.peek() != "{":
        raise BodyError(path, "a record must be an object")
    taken: dict[str, JsonValue] = {}
    for name in cursor.members():
        if name not in RECORD_FIELDS:
            raise BodyError(f"{path}.{name}", f"unknown field; known are {', '.join(RECORD_FIELDS)}")
        taken[name] = cursor.value()
    return ProduceRecord(
        key=_payload(taken.get("key"), f"{path}.key"),
        value=_payload(taken.get("value"), f"{path}.value"),
        headers=tuple(_headers(taken.get("headers"), f"{path}.headers")),
        partition=_integer(taken.get("partition"), f"{path}.partition", INT32_MAX),
        timestamp_ms=_integer(taken.get("timestamp"), f"{path}.timestamp", INT64_MAX),
    )


def _integer(value: JsonValue | None, path: str, largest: int) -> int | None:
    if value is None or value.decoded is None:
        return None
    number = value.decoded
    if isinstance(number, bool) or not isinstance(number, int):
        raise BodyError(path, "must be a whole number")
    if not 0 <= number <= largest:
        raise BodyError(path, f"must be between 0 and {largest}")
    return number


def _payload(value: JsonValue | None, path: str) -> bytes | None:
    if value is None or value.decoded is None:
        return None
    if _is_envelope(value.decoded):
        return _from_envelope(value.text, path)
    if isinstance(value.decoded, str):
        return _utf8(value.decoded, path)
    return value.text.encode()


def _is_envelope(decoded: object) -> bool:
    """An object of exactly `type` and `data` whose type is a word in capitals. Any other object is a bare value."""
    if not isinstance(decoded, dict) or decoded.keys() != {"type", "data"}:
        return False
    kind = decoded["type"]
    return isinstance(kind, str) and _ENVELOPE_TYPE.fullmatch(kind) is not None


def _from_envelope(text: str, path: str) -> bytes | None:
    cursor = JsonCursor(text)
    parts = {name: cursor.value() for name in cursor.members()}
    kind, data = parts["type"].decoded, parts["data"]
    if kind not in ENVELOPE_TYPES:
        hint = 'to store such an object itself, wrap it: {"type": "JSON", "data": {...}}'
        raise BodyError(f"{path}.type", f"must be one of {', '.join(ENVELOPE_TYPES)}; {hint}")
    if kind == "JSON":
        return data.text.encode()
    if data.decoded is None:
        return None
    if not isinstance(data.decoded, str):
        raise BodyError(f"{path}.data", f"must be a string for the type {kind}")
    return _utf8(data.decoded, f"{path}.data") if kind == "STRING" else _base64(data.decoded, f"{path}.data")


def _headers(value: JsonValue | None, path: str) -> Iterator[tuple[str, bytes | None]]:
    if value is None or value.decoded is None:
        return
    if not isinstance(value.decoded, list):
        raise BodyError(path, 'must be an array of {"name", "value"}')
    for index, header in enumerate(value.decoded):
        yield _header(header, f"{path}[{index}]")


def _header(header: object, path: str) -> tuple[str, bytes | None]:
    if not isinstance(header, dict):
        raise BodyError(path, 'must be an object {"name", "value"}')
    for unknown in header.keys() - {"name", "value"}:
        raise BodyError(f"{path}.{unknown}", "unknown field; known are name and value")
    name, data = header.get("name"), header.get("value")
    if not isinstance(name, str):
        raise BodyError(f"{path}.name", "must be a string")
    if data is not None and not isinstance(data, str):
        raise BodyError(f"{path}.value", "must be base64 text or null")
    _utf8(name, f"{path}.name")
    return name, None if data is None else _base64(data, f"{path}.value")


def _utf8(text: str, path: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError:
        raise BodyError(path, "holds half of a surrogate pair, which no UTF-8 text can") from None


def _base64(text: str, path: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        raise BodyError(path, "is not base64") from None
