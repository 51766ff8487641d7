"""Which pages may open a socket."""

from __future__ import annotations

import pytest

from web.consumers.origin import is_allowed

HOSTS = ["localhost", "127.0.0.1", "[::1]", ".highwater.example"]


@pytest.mark.parametrize(
    ("origin", "has_key", "allowed"),
    [
        ("http://localhost:8000", False, True),
        ("http://127.0.0.1:5173", False, True),
        ("http://[::1]:8000", False, True),
        ("https://app.highwater.example", False, True),
        ("https://evil.example", False, False),
        ("https://evil.example", True, False),
        ("https://localhost@evil.example", False, False),
        ("https://evil.example/localhost", False, False),
        ("http://localhost.evil.example", False, False),
        ("null", False, False),
        ("file://", False, False),
        ("", False, False),
        (None, False, False),
        (None, True, True),
    ],
)
def test_origin(origin: str | None, has_key: bool, allowed: bool) -> None:
    assert is_allowed(origin, HOSTS, has_key=has_key) is allowed
