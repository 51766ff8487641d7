"""One bound on the bytes of large requests that are being received or handled, over all connections of the broker."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable


class ByteBudget:
    """A whole frame is reserved before its body is read, so that whoever has begun can always finish."""

    def __init__(self, limit_bytes: int) -> None:
        self.limit_bytes = limit_bytes
        self.taken_bytes = 0
        self._waiting: deque[tuple[int, Callable[[], None]]] = deque()

    def take(self, size_bytes: int, on_granted: Callable[[], None]) -> bool:
        """True: taken. False: `on_granted` is called later, with the bytes taken, in order of asking."""
        assert size_bytes <= self.limit_bytes, "a request that is larger than the whole budget would wait for ever"
        if self._waiting or self.taken_bytes + size_bytes > self.limit_bytes:
            self._waiting.append((size_bytes, on_granted))
            return False
        self.taken_bytes += size_bytes
        return True

    def give_back(self, size_bytes: int) -> None:
        assert size_bytes <= self.taken_bytes, "only what was taken comes back"
        self.taken_bytes -= size_bytes
        while self._waiting and self.taken_bytes + self._waiting[0][0] <= self.limit_bytes:
            granted_bytes, on_granted = self._waiting.popleft()
            self.taken_bytes += granted_bytes
            on_granted()
