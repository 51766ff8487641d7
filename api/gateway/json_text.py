"""A pull parser over JSON text that keeps the text: what was sent as `9007199254740993` is stored with these digits.

Stricter than Python's: NaN and Infinity, repeated names and deep nesting are refused, because some reader of the stored
text would refuse or misread them. Pure; raises JsonError with the character position.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, NamedTuple

DEPTH_MAX = 64
INTEGER_DIGITS_MAX = 4000  # Python refuses to convert longer ones, in its own words
_SPACE = re.compile(r"[ \t\n\r]*")
_NESTING = re.compile(r'"(?:[^"\\]|\\.)*"|[\[{]|[\]}]', re.DOTALL)


class JsonError(ValueError):
    """Not JSON as we take it."""


class JsonValue(NamedTuple):
    decoded: Any
    text: str


def _refuse_constant(name: str) -> Any:
    raise JsonError(f"{name} is not JSON")


def _integer(text: str) -> int:
    if len(text) > INTEGER_DIGITS_MAX:
        raise JsonError(f"a number of {len(text)} digits is too long")
    return int(text)


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) != len(pairs):
        seen: set[str] = set()
        name = next(name for name, _ in pairs if name in seen or seen.add(name))  # type: ignore[func-returns-value]
        raise JsonError(f"{name!r} is given twice")
    return members


_DECODER = json.JSONDecoder(parse_constant=_refuse_constant, parse_int=_integer, object_pairs_hook=_unique)


class JsonCursor:
    """Walks one text. The caller consumes exactly one value after each step of `members` and `elements`."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.position = 0
        self._skip_space()

    def peek(self) -> str:
        """The first character of what comes next; empty at the end."""
        return self.text[self.position : self.position + 1]

    def value(self) -> JsonValue:
        start = self.position
        try:
            decoded, end = _DECODER.raw_decode(self.text, start)
        except RecursionError:
            raise JsonError(f"nested more than {DEPTH_MAX} deep at character {start}") from None
        except json.JSONDecodeError as error:
            raise JsonError(f"{error.msg} at character {error.pos}") from None
        text = self.text[start:end]
        _check_depth(text, start)
        self.position = end
        self._skip_space()
        return JsonValue(decoded, text)

    def members(self) -> Iterator[str]:
        """The names of an object, in order."""
        seen: set[str] = set()
        for _ in self._items("{", "}"):
            name = self._name()
            if name in seen:
                raise JsonError(f"{name!r} is given twice")
            seen.add(name)
            yield name

    def elements(self) -> Iterator[int]:
        """The indexes of an array."""
        yield from self._items("[", "]")

    def end(self) -> None:
        if self.position != len(self.text):
            raise JsonError(f"something follows the JSON value at character {self.position}")

    def _items(self, opening: str, closing: str) -> Iterator[int]:
        self._expect(opening)
        index = 0
        while self.peek() != closing:
            if index:
                self._expect(",")
            yield index
            index += 1
        self._expect(closing)

    def _name(self) -> str:
        if self.peek() != '"':
            raise JsonError(f"a name in quotes is missing at character {self.position}")
        name = self.value().decoded
        self._expect(":")
        return str(name)

    def _expect(self, character: str) -> None:
        if self.peek() != character:
            found = repr(self.peek()) if self.peek() else "the end"
            raise JsonError(f"{character!r} expected at character {self.position}, not {found}")
        self.position += 1
        self._skip_space()

    def _skip_space(self) -> None:
        match = _SPACE.match(self.text, self.position)
        assert match is not None, "the pattern matches the empty text"
        self.position = match.end()


def _check_depth(text: str, start: int) -> None:
    # Counting brackets is a fast upper bound; the exact walk is needed for wide values only.
    if text.count("[") + text.count("{") <= DEPTH_MAX:
        return
    depth = 0
    for match in _NESTING.finditer(text):
        bracket = match.group()
        depth += (bracket in "[{") - (bracket in "]}")
        if depth > DEPTH_MAX:
            raise JsonError(f"nested more than {DEPTH_MAX} deep at character {start + match.start()}")


def is_json(text: str) -> bool:
    """Whether the whole text is one JSON value, by the same rules."""
    try:
        cursor = JsonCursor(text)
        cursor.value()
        cursor.end()
    except JsonError:
        return False
    return True
