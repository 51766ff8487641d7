"""When one sync of the whole file system is worth it for the many logs that wait: contracts.md section 8. Pure.

It also writes whatever else is dirty there, so what it takes is measured, beside what a log's own flush takes. One
that took too long is followed by flushes log by log, and tried again some time later: dirty pages come and go.
"""

from __future__ import annotations

LOGS_MIN = 32
RETRY_MS = 10_000
_WEIGHT = 0.1
"""Of the newest flush of one log in the mean of them."""


class SyncfsRule:
    def __init__(self, setting: str, *, owns_file_system: bool, thread_count: int) -> None:
        self._is_forced = setting == "always"
        self._is_allowed = self._is_forced or (setting == "auto" and owns_file_system)
        self._thread_count = thread_count
        self._one_log_ms: float | None = None
        self._retry_at_ms: int | None = None

    def is_better(self, log_count: int, now_ms: int) -> bool:
        if not self._is_allowed or log_count < LOGS_MIN:
            return False
        return self._is_forced or self._retry_at_ms is None or now_ms >= self._retry_at_ms

    def on_one_log(self, elapsed_ms: int) -> None:
        """A log was flushed by itself."""
        mean = elapsed_ms if self._one_log_ms is None else self._one_log_ms
        self._one_log_ms = mean + _WEIGHT * (elapsed_ms - mean)

    def on_syncfs(self, log_count: int, elapsed_ms: int, now_ms: int) -> None:
        one_by_one_ms = self._one_by_one_ms(log_count)
        is_worth_it = one_by_one_ms is None or elapsed_ms <= one_by_one_ms
        self._retry_at_ms = None if is_worth_it else now_ms + RETRY_MS

    def _one_by_one_ms(self, log_count: int) -> float | None:
        return None if self._one_log_ms is None else self._one_log_ms * log_count / self._thread_count

    def on_error(self) -> None:
        """What it could not write is known to nobody now. It is never asked again."""
        self._is_allowed = self._is_forced = False
