"""Which brokers left in the last seconds, as the images tell that this node has shown. Pure.

Clients go on being told of them for that long, and so of one that restarts meanwhile at any time. librdkafka drops a
broker that a metadata answer leaves out. It then forgets a leader that it hears of in the same answer, and asks again
only after a second; and where it waits for a connection to that broker as a group's coordinator, nothing wakes it until
another broker comes or goes: send_offsets_to_transaction() hangs (confluentinc/librdkafka#5511).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from broker_engine.metadata.image import MetadataImage

LEFT_LATELY_MS = 3_000


class Departures:
    def __init__(self) -> None:
        self._left_at_ms: dict[int, int] = {}
        """Of brokers that are fenced."""

    def follow(self, old: MetadataImage, new: MetadataImage, now_ms: int) -> None:
        if new.brokers is old.brokers:
            return
        left_at_ms = {}
        for broker in new.brokers.values():
            before = old.brokers.get(broker.id)
            if not broker.is_fenced or before is None:
                continue
            if not before.is_fenced:
                left_at_ms[broker.id] = now_ms
            elif broker.id in self._left_at_ms:
                left_at_ms[broker.id] = self._left_at_ms[broker.id]
        self._left_at_ms = left_at_ms

    def is_recent(self, broker_id: int, now_ms: int) -> bool:
        left_at_ms = self._left_at_ms.get(broker_id)
        return left_at_ms is not None and now_ms - left_at_ms < LEFT_LATELY_MS
