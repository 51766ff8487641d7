"""What is known of one transactional id. Frozen: a decision makes the next one, which is true once it is stored."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any, NamedTuple

from broker_engine.transactions.states import TRANSITIONS, TransactionState

NO_PRODUCER_ID = -1
NO_EPOCH = -1
NO_TIME = -1
EPOCH_MAX = 32_766
"""The last one that a producer gets: one more is left, so that it can always be fenced."""
VERSION_2 = 2
"""Transaction version 2 (KIP-890): the epoch is raised with every transaction."""

TopicPartition = tuple[str, int]
"""The topic by its physical text."""


class Producer(NamedTuple):
    id: int
    epoch: int


NOBODY = Producer(NO_PRODUCER_ID, NO_EPOCH)


@dataclass(frozen=True, slots=True, kw_only=True)
class Transaction:
    transactional_id: str
    producer_id: int
    producer_epoch: int
    previous_producer_id: int
    """The one before the last change; the same, but for a change of producer id."""
    next_producer_id: int = NO_PRODUCER_ID
    """Takes over with epoch 0 when the transaction is complete: the epochs of this one are used up."""
    last_epoch: int = NO_EPOCH
    """The one that the producer knew before its epoch was raised, so that it may ask again. Not stored, as in Kafka:
    after a fail-over such a producer is fenced."""
    timeout_ms: int
    state: TransactionState = TransactionState.EMPTY
    partitions: tuple[TopicPartition, ...] = ()
    started_ms: int = NO_TIME
    updated_ms: int
    client_version: int = 0
    """2 where the producer's last step was made by transaction version 2."""

    @property
    def producer(self) -> Producer:
        return Producer(self.producer_id, self.producer_epoch)

    @property
    def is_epoch_exhausted(self) -> bool:
        return self.producer_epoch >= EPOCH_MAX

    @property
    def is_commit(self) -> bool:
        return self.state in (TransactionState.PREPARE_COMMIT, TransactionState.COMPLETE_COMMIT)

    def moved(self, state: TransactionState, now_ms: int, **changes: Any) -> Transaction:
        """Time does not go back, even where the clock does."""
        assert state in TRANSITIONS[self.state], f"{self.state.text} is not followed by {state.text}"
        changes.setdefault("previous_producer_id", self.producer_id)
        return dataclasses.replace(self, state=state, updated_ms=max(now_ms, self.updated_ms), **changes)
