"""Ends a process in which one call of librdkafka lasts far longer than the time-out that it was given.

send_offsets_to_transaction() may wait for ever: rdkafka_coord.c never looks at the time-out of a request to a group's
coordinator (confluentinc/librdkafka#5456), and a coordinator that a metadata answer leaves out while a client waits for
its connection is waited for until some other broker comes or goes (#5511). No answer of a broker ends that wait.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from typing import Self

HUNG_EXIT = 75
_LOOK_S = 0.5


class Watchdog:
    """`with watchdog:` around a call; whatever it takes longer than the limit for, `on_hung` is told, then all ends."""

    def __init__(self, limit_s: float, on_hung: Callable[[], None]) -> None:
        self._limit_s, self._on_hung = limit_s, on_hung
        self._began = float("inf")

    def start(self) -> None:
        threading.Thread(target=self._run, daemon=True).start()

    def __enter__(self) -> Self:
        self._began = time.monotonic()
        return self

    def __exit__(self, *_: object) -> None:
        self._began = float("inf")

    def _run(self) -> None:
        while time.monotonic() - self._began < self._limit_s:
            time.sleep(_LOOK_S)
        self._on_hung()
        os._exit(HUNG_EXIT)  # the call holds a thread that cannot be ended
