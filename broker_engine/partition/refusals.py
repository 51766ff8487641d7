"""Batches of idempotent producers that were refused through no fault of theirs, and the gap behind each of them.

A producer has several requests under way. When the first is refused, to be tried again (too few replicas in sync, a
full disk, a leader that does not hear the controller), and the reason is gone before the second arrives, the second is
out of order. Kafka says so; librdkafka then begins a new epoch for all partitions and sends again what may be stored
already: duplicates. Here the second is refused like the first, so that both come again in order. For a short while
only: a producer that really skipped a sequence is told in the end.

Where it was the leader before that refused the first one, nobody here knows: librdkafka then sends the second to the
new leader while the first waits to be sent again. So a gap between what a producer sent to the last leader and what it
sends to this one is not out of order either, for as long (PartitionCore).
"""

from __future__ import annotations

from dataclasses import dataclass

from broker_engine.errors import ErrorCode
from broker_engine.records.header import BatchHeader

REMEMBERED_MS = 10_000
PRODUCERS_MAX = 1_000
_SEQUENCE_END = 1 << 31


@dataclass(slots=True)
class Refused:
    epoch: int
    sequence: int
    until_ms: int
    code: ErrorCode


class Refusals:
    def __init__(self) -> None:
        self._refused: dict[int, Refused] = {}

    def __bool__(self) -> bool:
        return bool(self._refused)

    def note(self, header: BatchHeader, code: ErrorCode, now_ms: int) -> None:
        """The batch is refused. The first of a producer counts, those behind it do not."""
        if header.producer_id < 0 or self.explain(header, now_ms) is not None:
            return
        if len(self._refused) >= PRODUCERS_MAX:
            self._refused = {key: one for key, one in self._refused.items() if now_ms < one.until_ms}
        if len(self._refused) < PRODUCERS_MAX:
            refused = Refused(header.producer_epoch, header.base_sequence, now_ms + REMEMBERED_MS, code)
            self._refused[header.producer_id] = refused

    def explain(self, header: BatchHeader, now_ms: int) -> ErrorCode | None:
        """Why the batch was refused that a gap before this one is due to; None where there was none."""
        refused = self._refused.get(header.producer_id)
        if refused is None or header.producer_epoch != refused.epoch or now_ms >= refused.until_ms:
            return None
        is_behind = 0 < (header.base_sequence - refused.sequence) % _SEQUENCE_END < _SEQUENCE_END // 2
        return refused.code if is_behind else None

    def forget(self, producer_id: int) -> None:
        """It is in order again."""
        if self._refused:
            self._refused.pop(producer_id, None)
