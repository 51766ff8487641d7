"""A stored record as the JSON that REST and WebSocket clients get.

Offsets are decimal text: int64 does not fit a JavaScript number.
Stored bytes are anybody's: whatever they are, they come out as something JSON can carry, and never as an error.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Iterable
from typing import Any, Protocol

from api.gateway.json_text import is_json

FORMATS = ("auto", "string", "json", "base64")
# A text with such characters is more likely numbers in binary than something to read.
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")


class StoredRecord(Protocol):
    @property
    def partition(self) -> int: ...
    @property
    def offset(self) -> int: ...
    @property
    def timestamp_ms(self) -> int: ...
    @property
    def key(self) -> bytes | None: ...
    @property
    def value(self) -> bytes | None: ...
    @property
    def headers(self) -> Iterable[tuple[str, bytes | None]]: ...


def record_json(record: StoredRecord, key_format: str, value_format: str) -> dict[str, Any]:
    return {
        "partition": record.partition,
        "offset": str(record.offset),
        "timestamp": record.timestamp_ms,
        "key": payload_json(record.key, key_format),
        "value": payload_json(record.value, value_format),
        "headers": [{"name": name, "value": _base64(value)} for name, value in record.headers],
    }


def payload_json(data: bytes | None, wanted: str) -> dict[str, str] | None:
    """`json` and `string` fall back to base64 where the bytes are something else: one odd record must not hide others.

    `auto` names JSON only objects and arrays: a bare `17` reads the same as a string, and most of them are strings.
    """
    if data is None:
        return None
    text = None if wanted == "base64" else _decoded(data)
    if text is None:
        return {"type": "base64", "data": base64.b64encode(data).decode()}
    if wanted == "json" or (wanted == "auto" and text.lstrip()[:1] in ("{", "[")):
        if is_json(text):
            return {"type": "json", "text": text}
        if wanted == "json":
            return payload_json(data, "base64")
    if wanted == "auto" and _CONTROL.search(text):
        return payload_json(data, "base64")
    return {"type": "string", "data": text}


def record_size_bytes(record: StoredRecord) -> int:
    """What a record counts against byte limits and credit: its own bytes, whatever form they are shown in."""
    headers = sum(len(name.encode()) + len(value or b"") for name, value in record.headers)
    return len(record.key or b"") + len(record.value or b"") + headers


def _decoded(data: bytes) -> str | None:
    try:
        return bytes(data).decode("utf-8")
    except UnicodeDecodeError:
        return None


def _base64(data: bytes | None) -> str | None:
    return None if data is None else base64.b64encode(data).decode()
