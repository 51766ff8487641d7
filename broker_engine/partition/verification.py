"""Transactional batches whose transaction the coordinator is being asked about (KIP-890, part 1).

Without it a batch that arrives after its transaction ended would open one that nobody ends. So the first batch of a
transaction is let in only with a guard that was handed out before the coordinator was asked, and that still stands: the
transaction's first batch and every marker take it away.
"""

from __future__ import annotations

from broker_engine.errors import BrokerError, ErrorCode
from broker_engine.records.header import BatchHeader

PRODUCERS_MAX = 10_000


class Guard:
    """Of one producer: all its batches that are being verified share it. Compared by identity."""

    __slots__ = ("is_adding", "lowest_sequence", "producer_epoch")

    def __init__(self, producer_epoch: int, sequence: int, *, is_adding: bool) -> None:
        self.producer_epoch = producer_epoch
        self.lowest_sequence = sequence
        self.is_adding = is_adding
        """The partition is added to the transaction by this very batch (transaction version 2)."""

    def note(self, producer_epoch: int, sequence: int) -> None:
        if producer_epoch > self.producer_epoch:
            self.producer_epoch, self.lowest_sequence = producer_epoch, sequence
        elif producer_epoch == self.producer_epoch:
            self.lowest_sequence = min(self.lowest_sequence, sequence)


class Verifications:
    def __init__(self) -> None:
        self._guards: dict[int, Guard] = {}

    def begin(self, header: BatchHeader, *, is_adding: bool) -> Guard:
        guard = self._guards.get(header.producer_id)
        if guard is None:
            if len(self._guards) >= PRODUCERS_MAX:  # the oldest has to ask again
                del self._guards[next(iter(self._guards))]
            guard = Guard(header.producer_epoch, header.base_sequence, is_adding=is_adding)
            self._guards[header.producer_id] = guard
        else:
            guard.note(header.producer_epoch, header.base_sequence)
        return guard

    def check(self, header: BatchHeader, guard: Guard | None) -> None:
        """BrokerError where the batch would open a transaction that the coordinator may not know."""
        if guard is None or self._guards.get(header.producer_id) is not guard:
            text = f"producer {header.producer_id} has no transaction in this partition"
            raise BrokerError(ErrorCode.INVALID_TXN_STATE, text)
        if header.base_sequence > guard.lowest_sequence:
            text = f"sequence {header.base_sequence} came before {guard.lowest_sequence}"
            raise BrokerError(ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, text)

    def forget(self, producer_id: int) -> None:
        if self._guards:
            self._guards.pop(producer_id, None)
