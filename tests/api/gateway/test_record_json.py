"""Stored bytes as JSON."""

from __future__ import annotations

import pytest

from api.gateway.record_json import payload_json


@pytest.mark.parametrize(
    ("data", "wanted", "shown"),
    [
        (None, "auto", None),
        (b"", "auto", {"type": "string", "data": ""}),
        (b"o-17", "auto", {"type": "string", "data": "o-17"}),
        (b"17", "auto", {"type": "string", "data": "17"}),
        (b'{"n":9007199254740993}', "auto", {"type": "json", "text": '{"n":9007199254740993}'}),
        (b"{not json", "auto", {"type": "string", "data": "{not json"}),
        (b'{"n":NaN}', "auto", {"type": "string", "data": '{"n":NaN}'}),
        (b"\x00\x00\x00\x05", "auto", {"type": "base64", "data": "AAAABQ=="}),
        (b"\xff", "auto", {"type": "base64", "data": "/w=="}),
        (b"17", "json", {"type": "json", "text": "17"}),
        (b"hello", "json", {"type": "base64", "data": "aGVsbG8="}),
        (b"\xff", "string", {"type": "base64", "data": "/w=="}),
        (b"\x05", "string", {"type": "string", "data": "\x05"}),
        (b"hi", "base64", {"type": "base64", "data": "aGk="}),
        (b"[" * 100_000, "auto", {"type": "string", "data": "[" * 100_000}),
    ],
)
def test_payload(data: bytes | None, wanted: str, shown: dict[str, str] | None) -> None:
    assert payload_json(data, wanted) == shown
