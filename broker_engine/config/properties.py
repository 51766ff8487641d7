"""Java's `.properties` text, as Kafka's config files are written: `key=value`, comments, continued lines, escapes."""

from __future__ import annotations

import re
from collections.abc import Iterator

from broker_engine.config.knobs import ConfigError

_ESCAPES = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
_ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|.)", re.DOTALL)
_KEY = re.compile(r"(?P<key>(?:\\.|[^\\=:\s])*)\s*[=:]?\s*(?P<value>.*)", re.DOTALL)


def parse_properties(text: str) -> dict[str, str]:
    """Key to value. A key that stands twice is an error: one of the two would be silently without effect."""
    values: dict[str, str] = {}
    for line in _logical_lines(text):
        match = _KEY.fullmatch(line)
        assert match is not None, "the pattern takes any text"
        key = _unescape(match["key"])
        if key in values:
            raise ConfigError(f'config "{key}" is given twice')
        values[key] = _unescape(match["value"]).rstrip()
    return values


def encode_properties(values: dict[str, str]) -> str:
    """Lines that `parse_properties` and Java read back, in the order given."""
    return "".join(f"{_escape(key, is_key=True)}={_escape(value)}\n" for key, value in values.items())


def _logical_lines(text: str) -> Iterator[str]:
    """Lines without comments and blanks, joined where one ends in an odd number of backslashes."""
    pending = ""
    for raw in text.replace("\r\n", "\n").replace("\r", "\n").split("\n"):
        line = raw.lstrip(" \t\f")
        if not pending and (not line or line[0] in "#!"):
            continue
        if (len(line) - len(line.rstrip("\\"))) % 2:
            pending += line[:-1]
            continue
        yield pending + line
        pending = ""
    if pending:
        yield pending


def _unescape(text: str) -> str:
    return _ESCAPE.sub(_unescape_one, text)


def _unescape_one(match: re.Match[str]) -> str:
    escaped = match[1]
    if escaped.startswith("u") and len(escaped) == 5:
        return chr(int(escaped[1:], 16))
    return _ESCAPES.get(escaped, escaped)


def _escape(text: str, *, is_key: bool = False) -> str:
    special = "\\=: #!" if is_key else "\\"
    escaped = "".join(f"\\{character}" if character in special else character for character in text)
    return escaped.replace("\n", "\\n").replace("\r", "\\r").replace("\t", "\\t")
