"""flush.messages and flush.ms: for topics whose acks do not wait for the disk."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from broker_engine.config import TopicConfig
from broker_engine.config.topic import LONG_MAX
from broker_engine.partition.core import AckDurability

_TIMER_MS_MAX = 86_400_000


class FlushRules:
    """Does not look at every append where there are no rules: `has_any`."""

    def __init__(self, request_flush: Callable[[], None]) -> None:
        self.has_any = False
        self._request_flush = request_flush
        self._messages = self._ms = LONG_MAX
        self._timer: asyncio.TimerHandle | None = None

    def configure(self, config: TopicConfig) -> None:
        self.cancel()
        self._messages, self._ms = config.flush_messages, config.flush_ms
        has_rules = min(self._messages, self._ms) < LONG_MAX
        self.has_any = has_rules and config.ack_durability != AckDurability.FSYNC.value

    def apply(self, unflushed_count: int) -> None:
        if unflushed_count >= self._messages:
            self._request_flush()
        elif unflushed_count > 0 and self._timer is None and self._ms < LONG_MAX:
            wait_s = min(self._ms, _TIMER_MS_MAX) / 1000
            self._timer = asyncio.get_running_loop().call_later(wait_s, self._on_time)

    def cancel(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _on_time(self) -> None:
        self._timer = None
        self._request_flush()
