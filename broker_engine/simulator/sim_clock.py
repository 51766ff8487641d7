"""Time and chance of one node: a wall clock that jumps and drifts, a monotonic one that does not, draws by the seed."""

from __future__ import annotations

from random import Random
from uuid import UUID

from broker_engine.simulator.sim_loop import SimLoop

START_MS = 1_760_000_000_000


class SimClock:
    def __init__(self, loop: SimLoop, *, monotonic_start_ms: int = 0) -> None:
        self.offset_ms = 0
        """How far the wall clock was moved."""
        self.drift = 0.0
        """Milliseconds that it gains in a millisecond."""
        self._loop = loop
        self._monotonic_start_ms = monotonic_start_ms

    def now_ms(self) -> int:
        elapsed_ms = self._loop.now_s * 1000
        return START_MS + self.offset_ms + int(elapsed_ms * (1 + self.drift))

    def monotonic_ms(self) -> int:
        return self._monotonic_start_ms + int(self._loop.now_s * 1000)


class SimRandomness:
    def __init__(self, seed: str) -> None:
        self._random = Random(seed)  # noqa: S311 - the simulation's secrets are known to all

    def uuid(self) -> UUID:
        while True:
            candidate = UUID(bytes=self._random.randbytes(16), version=4)
            if candidate.bytes[0] >> 2 != 62:
                return candidate

    def token_bytes(self, size_bytes: int) -> bytes:
        return self._random.randbytes(size_bytes)

    def unit(self) -> float:
        return self._random.random()
