"""The one exception of the codec. Malformed input and values that a version cannot carry raise it, nothing else."""

from __future__ import annotations

from typing import NoReturn


class WireError(Exception):
    """Bytes that are not a message, or a message that cannot be bytes. The connection that sent it is closed."""


def refuse_length(field: str, length: int, bytes_left: int) -> NoReturn:
    raise WireError(f"{field}: length {length} does not fit ({bytes_left} bytes left)")


def refuse_null(field: str) -> NoReturn:
    raise WireError(f"{field}: null where a value is needed")


def refuse_memory(field: str) -> NoReturn:
    raise WireError(f"{field}: more elements than the memory budget of one message allows")


def refuse_version(field: str, version: int) -> NoReturn:
    raise WireError(f"{field}: set, but version {version} cannot carry it")
