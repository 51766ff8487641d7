"""Time and chance of one node: a wall clock that jumps, a monotonic one that does not, both at a rate of their own, and
draws by the seed.
"""

from __future__ import annotations

from random import Random
from uuid import UUID

from broker_engine.simulator.sim_loop import SimLoop

START_MS = 1_760_000_000_000


class SimClock:
    def __init__(self, loop: SimLoop, *, monotonic_start_ms: int = 0, rate: float = 1.0) -> None:
        self.offset_ms = 0
        """How far the wall clock was moved."""
        self.rate = rate
        """Milliseconds that it counts in one. The loop's timers are told by `Process.clock_rate`."""
        self._loop = loop
        self._monotonic_start_ms = monotonic_start_ms

    def now_ms(self) -> int:
        return START_MS + self.offset_ms + self._elapsed_ms()

    def monotonic_ms(self) -> int:
        return self._monotonic_start_ms + self._elapsed_ms()

    def _elapsed_ms(self) -> int:
        return int(self._loop.now_s * 1000 * self.rate)


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
