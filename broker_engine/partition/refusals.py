"""Batches of idempotent producers that were refused for want of in-sync replicas, and the gap behind each of them.

A producer has several requests under way. When the first is refused (NOT_ENOUGH_REPLICAS, to be tried again) and a
replica joins before the second arrives, the second is out of order, through no fault of the producer's. Kafka says so;
librdkafka then begins a new epoch for all partitions and sends again what may be stored already: duplicates. Here the
second is refused like the first, so that both come again in order. For a short while only: a producer that really
skipped a sequence is told in the end.
"""

from __future__ import annotations

from dataclasses import dataclass

from broker_engine.records.header import BatchHeader

REMEMBERED_MS = 10_000
PRODUCERS_MAX = 1_000
_SEQUENCE_END = 1 << 31


@dataclass(slots=True)
class Refused:
    epoch: int
    sequence: int
    until_ms: int


class Refusals:
    def __init__(self) -> None:
        self._refused: dict[int, Refused] = {}

    def note(self, header: BatchHeader, now_ms: int) -> None:
        """The batch is refused. The first of a producer counts, those behind it do not."""
        if header.producer_id < 0 or self.explain(header, now_ms):
            return
        if len(self._refused) >= PRODUCERS_MAX:
            self._refused = {key: one for key, one in self._refused.items() if now_ms < one.until_ms}
        if len(self._refused) < PRODUCERS_MAX:
            refused = Refused(header.producer_epoch, header.base_sequence, now_ms + REMEMBERED_MS)
            self._refused[header.producer_id] = refused

    def explain(self, header: BatchHeader, now_ms: int) -> bool:
        """Is a gap before this batch due to one that was refused?"""
        refused = self._refused.get(header.producer_id)
        if refused is None or header.producer_epoch != refused.epoch or now_ms >= refused.until_ms:
            return False
        return 0 < (header.base_sequence - refused.sequence) % _SEQUENCE_END < _SEQUENCE_END // 2

    def forget(self, producer_id: int) -> None:
        """It is in order again."""
        if self._refused:
            self._refused.pop(producer_id, None)
