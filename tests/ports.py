"""Ports that stay ours while a broker is down: from below the range that the kernel gives to outgoing connections."""

from __future__ import annotations

import random
import socket

_LOWEST, _HIGHEST = 15_000, 31_000
_taken: set[int] = set()


def own_port() -> int:
    return own_port_row(1)


def own_port_row(count: int) -> int:
    """The first of `count` in a row."""
    chosen = random.SystemRandom()
    while True:
        first = chosen.randrange(_LOWEST, _HIGHEST - count)
        row = range(first, first + count)
        if _taken.isdisjoint(row) and all(map(_is_free, row)):
            _taken.update(row)
            return first


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True
