"""Kafka's states of a transaction, with the numbers that stand in `__transaction_state` and the names that its tools
print, and which may follow which.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum
from types import MappingProxyType


class TransactionState(IntEnum):
    EMPTY = 0
    ONGOING = 1
    PREPARE_COMMIT = 2
    """Decided: every partition gets its marker, whatever happens to the producer or to the coordinator."""
    PREPARE_ABORT = 3
    COMPLETE_COMMIT = 4
    COMPLETE_ABORT = 5
    DEAD = 6
    """On its way out: expired, and the removal is being written. Never stored."""
    PREPARE_EPOCH_FENCE = 7
    """Kafka's name for a fence under way. Here it is one step with PREPARE_ABORT, and so never seen."""

    @property
    def text(self) -> str:
        return self.name.title().replace("_", "")

    @property
    def is_preparing(self) -> bool:
        return self in (TransactionState.PREPARE_COMMIT, TransactionState.PREPARE_ABORT)

    @property
    def is_over(self) -> bool:
        """Nothing is open: the id may be used anew, or expire."""
        return self in _OVER


_S = TransactionState
_OVER = frozenset({_S.EMPTY, _S.COMPLETE_COMMIT, _S.COMPLETE_ABORT})

TRANSITIONS: Mapping[TransactionState, frozenset[TransactionState]] = MappingProxyType(
    {
        # From over to PREPARE_ABORT: transaction version 2 raises the epoch also where nothing was written.
        _S.EMPTY: frozenset({_S.EMPTY, _S.ONGOING, _S.PREPARE_ABORT, _S.DEAD}),
        _S.ONGOING: frozenset({_S.ONGOING, _S.PREPARE_COMMIT, _S.PREPARE_ABORT}),
        _S.PREPARE_COMMIT: frozenset({_S.COMPLETE_COMMIT}),
        _S.PREPARE_ABORT: frozenset({_S.COMPLETE_ABORT}),
        _S.COMPLETE_COMMIT: frozenset({_S.EMPTY, _S.ONGOING, _S.PREPARE_ABORT, _S.DEAD}),
        _S.COMPLETE_ABORT: frozenset({_S.EMPTY, _S.ONGOING, _S.PREPARE_ABORT, _S.DEAD}),
        _S.DEAD: frozenset(),
        _S.PREPARE_EPOCH_FENCE: frozenset(),
    }
)
BY_TEXT: Mapping[str, TransactionState] = MappingProxyType({state.text: state for state in TransactionState})
