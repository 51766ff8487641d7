"""A fetch request's query string. Pure; QueryError names the parameter."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from api.gateway.record_json import FORMATS

WAIT_MS_MAX = 30_000
RECORDS_MAX = 1000
RECORDS_DEFAULT = 500
BYTES_MAX = 5 << 20
BYTES_DEFAULT = 1 << 20
INT64_MAX = (1 << 63) - 1
STARTS = ("offset", "timestamp", "tail")
KNOWN = (*STARTS, "max_records", "max_bytes", "wait_ms", "key_format", "value_format")


class QueryError(ValueError):
    """A query parameter is refused."""

    def __init__(self, field_name: str, message: str) -> None:
        super().__init__(message)
        self.field = field_name
        self.message = message


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchQuery:
    """Exactly one of offset, timestamp_ms, tail is set, or `edge` ("earliest" or "latest")."""

    offset: int | None = None
    timestamp_ms: int | None = None
    tail: int | None = None
    edge: str | None = None
    record_count_max: int = RECORDS_DEFAULT
    bytes_max: int = BYTES_DEFAULT
    wait_ms: int = 0
    key_format: str = "auto"
    value_format: str = "auto"


def parse_fetch_query(query: Mapping[str, str]) -> FetchQuery:
    for name in query:
        if name not in KNOWN:
            raise QueryError(name, f"unknown parameter; known are {', '.join(KNOWN)}")
    starts = [name for name in STARTS if name in query]
    if len(starts) > 1:
        raise QueryError(starts[1], f"give one of {', '.join(STARTS)}, not several")
    offset_text = query.get("offset", "earliest" if not starts else None)
    edge = offset_text if offset_text in ("earliest", "latest") else None
    return FetchQuery(
        offset=None if edge or offset_text is None else _number("offset", offset_text, INT64_MAX),
        edge=edge,
        timestamp_ms=_optional(query, "timestamp", INT64_MAX),
        tail=_optional(query, "tail", RECORDS_MAX),
        record_count_max=_positive(query, "max_records", RECORDS_DEFAULT, RECORDS_MAX),
        bytes_max=_positive(query, "max_bytes", BYTES_DEFAULT, BYTES_MAX),
        wait_ms=_number("wait_ms", query.get("wait_ms", "0"), WAIT_MS_MAX),
        key_format=_format(query, "key_format"),
        value_format=_format(query, "value_format"),
    )


def _optional(query: Mapping[str, str], name: str, largest: int) -> int | None:
    return _number(name, query[name], largest) if name in query else None


def _positive(query: Mapping[str, str], name: str, default: int, largest: int) -> int:
    number = _number(name, query.get(name, str(default)), largest)
    if number == 0:
        raise QueryError(name, "must be at least 1")
    return number


def _number(name: str, text: str, largest: int) -> int:
    # isdecimal() alone would take Arabic digits, and int() blanks and underscores.
    if not (text.isascii() and text.isdecimal() and len(text) <= 19):
        raise QueryError(name, "must be a whole number")
    if int(text) > largest:
        raise QueryError(name, f"must be at most {largest}")
    return int(text)


def _format(query: Mapping[str, str], name: str) -> str:
    wanted = query.get(name, "auto")
    if wanted not in FORMATS:
        raise QueryError(name, f"must be one of {', '.join(FORMATS)}")
    return wanted
