"""Time and randomness as they come into the engine: by constructor, so that the simulator can own both."""

from __future__ import annotations

import random
import secrets
import time
from typing import Protocol
from uuid import UUID


class Clock(Protocol):
    def now_ms(self) -> int:
        """Wall clock, milliseconds since 1970: for timestamps that people and records see."""
        ...

    def monotonic_ms(self) -> int:
        """Never jumps: for time-outs, rates and ages."""
        ...


class Randomness(Protocol):
    def uuid(self) -> UUID: ...

    def token_bytes(self, size_bytes: int) -> bytes: ...

    def unit(self) -> float:
        """At least 0, below 1: for jitter and other choices that are no secret."""
        ...


class SystemClock:
    def now_ms(self) -> int:
        return time.time_ns() // 1_000_000

    def monotonic_ms(self) -> int:
        return time.monotonic_ns() // 1_000_000


class SystemRandomness:
    def uuid(self) -> UUID:
        # Kafka's ids in text form must not start with a dash: command line tools would take them for an option.
        while True:
            raw = secrets.token_bytes(16)
            candidate = UUID(bytes=raw, version=4)
            if candidate.bytes[0] >> 2 != 62:
                return candidate

    def token_bytes(self, size_bytes: int) -> bytes:
        return secrets.token_bytes(size_bytes)

    def unit(self) -> float:
        return random.random()  # noqa: S311 - jitter, nothing secret
