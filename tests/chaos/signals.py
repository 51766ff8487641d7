"""Between a client's process and whoever looks after it: single bytes of shared memory.

No locks: a process that is killed, or stopped, while it holds one would leave it held.
"""

from __future__ import annotations

import multiprocessing
import time
from collections.abc import Callable
from dataclasses import dataclass, field

context = multiprocessing.get_context("spawn")
POLL_S = 0.001


class Flag:
    def __init__(self) -> None:
        self._value = context.RawValue("b", 0)

    def set(self) -> None:
        self._value.value = 1

    def clear(self) -> None:
        self._value.value = 0

    def is_set(self) -> bool:
        return bool(self._value.value)


@dataclass(frozen=True, slots=True)
class Signals:
    """Of one life of a client."""

    must_stop: Flag = field(default_factory=Flag)
    is_replaced: Flag = field(default_factory=Flag)
    """Another one has its transactional id: once it is fenced it ends, and asks for no epoch again."""
    has_epoch: Flag = field(default_factory=Flag)
    """Its producer was given a producer id and an epoch."""
    is_in_transaction: Flag = field(default_factory=Flag)


def wait_for(condition: Callable[[], bool], timeout_s: float) -> bool:
    deadline = time.monotonic() + timeout_s
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(POLL_S)
    return True
