"""Ports that stay ours while a broker is down: from below the range that the kernel gives to outgoing connections."""

from __future__ import annotations

import random
import socket

_LOWEST, _HIGHEST = 15_000, 31_000
_taken: set[int] = set()


def own_port() -> int:
    chosen = random.SystemRandom()
    while True:
        port = chosen.randrange(_LOWEST, _HIGHEST)
        if port not in _taken and _is_free(port):
            _taken.add(port)
            return port


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True
