"""How long a classic group waits for its members to join. A new group waits a moment, because most of its members come
together, and again whenever somebody came meanwhile, but never longer than the rebalance time.
"""

from __future__ import annotations


class RebalanceWait:
    def __init__(self, initial_delay_ms: int) -> None:
        self._initial_delay_ms = initial_delay_ms
        self.deadline_ms = 0
        self._initial_left_ms: int | None = None
        self._has_newcomer = False

    @property
    def is_initial(self) -> bool:
        """The wait of a new group, which does not end early."""
        return self._initial_left_ms is not None

    def begin(self, wait_ms: int, now_ms: int, *, is_new_group: bool) -> None:
        self._initial_left_ms = wait_ms if is_new_group else None
        self.deadline_ms = now_ms + wait_ms
        if is_new_group:
            self._take_delay(wait_ms, now_ms)

    def newcomer(self) -> None:
        self._has_newcomer = True

    def is_over(self, now_ms: int) -> bool:
        """At the deadline; moves it where somebody came in the meantime."""
        if now_ms < self.deadline_ms:
            return False
        if not self._initial_left_ms or not self._has_newcomer:
            return True
        self._take_delay(self._initial_left_ms, now_ms)
        return False

    def end(self) -> None:
        self._initial_left_ms = None

    def _take_delay(self, left_ms: int, now_ms: int) -> None:
        delay_ms = min(self._initial_delay_ms, left_ms)
        self._initial_left_ms, self._has_newcomer = left_ms - delay_ms, False
        self.deadline_ms = now_ms + delay_ms
