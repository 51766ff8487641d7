"""Source text in the making: lines, indentation, constants, and the function that comes out.

Both generators write through this. The text is kept in linecache, so a traceback shows the generated line.
"""

from __future__ import annotations

import linecache
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

# Arrays shorter than this (replicas, in-sync replicas) have ready-made struct formats.
SHORT_ARRAY_COUNT = 9


class Source:
    def __init__(self, name: str) -> None:
        self.filename = f"<wire {name}>"
        self._lines: list[str] = []
        self._depth = 0
        self._scope: dict[str, Any] = {}
        self._counter = 0

    def line(self, text: str) -> None:
        self._lines.append("    " * self._depth + text)

    @contextmanager
    def block(self, head: str) -> Iterator[None]:
        self.line(head)
        self._depth += 1
        yield
        self._depth -= 1

    def fresh(self, prefix: str) -> str:
        self._counter += 1
        return f"{prefix}{self._counter}"

    def constant(self, prefix: str, value: Any) -> str:
        """A name for a value that the generated code refers to; simple values stand in the text themselves."""
        if value is None or isinstance(value, bool | int | str | bytes) or value == ():
            return repr(value)
        for name, known in self._scope.items():
            if known is value:
                return name
        name = self.fresh(prefix)
        self._scope[name] = value
        return name

    def name(self, name: str, value: Any) -> str:
        self._scope[name] = value
        return name

    def unpacker(self, codes: str) -> str:
        return self.name(f"unpack_{_word(codes)}", struct.Struct(">" + codes).unpack_from)

    def packer(self, codes: str) -> str:
        return self.name(f"pack_{_word(codes)}", struct.Struct(">" + codes).pack)

    def unpackers(self, code: str) -> str:
        """Unpack functions of short arrays by their length: to build a format costs more than to unpack."""
        return self.name(f"unpack_many_{code}", _unpackers(code))

    def packers(self, prefix: str, code: str) -> str:
        return self.name(f"pack_{prefix}_many_{code}", _packers(prefix, code))

    def build(self, function: str) -> Any:
        text = "\n".join(self._lines) + "\n"
        linecache.cache[self.filename] = (len(text), None, text.splitlines(keepends=True), self.filename)
        exec(compile(text, self.filename, "exec"), self._scope)  # noqa: S102  # our own text, from our own declarations
        return self._scope[function]


@cache
def _unpackers(code: str) -> tuple[Any, ...]:
    return tuple(struct.Struct(f">{count}{code}").unpack_from for count in range(SHORT_ARRAY_COUNT))


@cache
def _packers(prefix: str, code: str) -> tuple[Any, ...]:
    return tuple(struct.Struct(f">{prefix}{count}{code}").pack for count in range(SHORT_ARRAY_COUNT))


def _word(codes: str) -> str:
    return codes.replace("?", "o")
