"""Bounds on replication of chosen replicas, so that a reassignment leaves room for clients.

A topic names the replicas (`leader.` and `follower.replication.throttled.replicas`), a broker the rate. Replicas that
are in sync are never held back: what is acked would wait for them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from broker_engine.clock import Clock

_ALL = ("*",)
WAIT_MS_MAX = 1_000
"""Then one looks again: the rate may have been raised."""


@dataclass(frozen=True, slots=True)
class ThrottledReplicas:
    """`partition:broker` each, or `*`."""

    values: tuple[str, ...]

    def holds(self, index: int, broker_id: int) -> bool:
        return self.values == _ALL or f"{index}:{broker_id}" in self.values


class RateLimit:
    """What was sent is a debt that goes down with time; there is more once it is paid."""

    def __init__(self, bytes_per_s: Callable[[], int], clock: Clock) -> None:
        self._bytes_per_s = bytes_per_s
        self._clock = clock
        self._debt_bytes = 0.0
        self._seen_ms = clock.monotonic_ms()

    def note(self, size_bytes: int) -> None:
        self._pay()
        self._debt_bytes += size_bytes

    def wait_ms(self) -> int:
        """0: go on."""
        self._pay()
        if self._debt_bytes <= 0:
            return 0
        rate = self._bytes_per_s()
        return WAIT_MS_MAX if rate <= 0 else min(WAIT_MS_MAX, 1 + int(self._debt_bytes * 1000 / rate))

    def _pay(self) -> None:
        now_ms = self._clock.monotonic_ms()
        paid_bytes = (now_ms - self._seen_ms) * self._bytes_per_s() / 1000
        self._debt_bytes = max(0.0, self._debt_bytes - paid_bytes)
        self._seen_ms = now_ms
