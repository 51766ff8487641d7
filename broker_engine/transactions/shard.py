"""All transactional ids of one partition of `__transaction_state`, pure: what is acknowledged, what is being written.

`replay` alone changes what is known, so that what a restart reads and what happens live take the same way. Time-outs
count on the monotonic clock, from when this coordinator first knew of the transaction: a new one gives what is open its
full time again, and no clock that jumps aborts anything. Names are physical texts.
"""

from __future__ import annotations

from collections.abc import Iterator

from broker_engine.transactions import core
from broker_engine.transactions.records import Record, decode_key, decode_value, removal_record, transaction_record
from broker_engine.transactions.states import TransactionState
from broker_engine.transactions.transaction import Transaction

IDS_MAX = 200_000
"""Per partition: about 200 MiB. Ids that nobody uses expire; one more than this is refused."""


class TransactionShard:
    def __init__(self) -> None:
        self.transactions: dict[str, Transaction] = {}
        self._pending: dict[str, Transaction | None] = {}
        """What is being written; None: a removal."""
        self._open_since_ms: dict[str, int] = {}

    def find(self, transactional_id: str) -> Transaction | None:
        return self.transactions.get(transactional_id)

    def is_pending(self, transactional_id: str) -> bool:
        return transactional_id in self._pending

    @property
    def is_full(self) -> bool:
        return len(self.transactions) >= IDS_MAX

    def preparing(self) -> Iterator[Transaction]:
        """Decided, and not known to be complete: their markers are sent again after a fail-over."""
        return (each for each in self.transactions.values() if each.state.is_preparing)

    # --- what the log says

    def replay(self, key: bytes, value: bytes | None, now_ms: int) -> None:
        """`now_ms` of the monotonic clock. UnknownTransactionRecord where it is none of ours."""
        transactional_id = decode_key(key)
        if value is None:
            self._remove(transactional_id)
        else:
            self._put(decode_value(transactional_id, value), now_ms)

    def _put(self, transaction: Transaction, now_ms: int) -> None:
        transactional_id = transaction.transactional_id
        self.transactions[transactional_id] = transaction
        if transaction.state is TransactionState.ONGOING:
            self._open_since_ms.setdefault(transactional_id, now_ms)
        else:
            self._open_since_ms.pop(transactional_id, None)

    def _remove(self, transactional_id: str) -> None:
        self.transactions.pop(transactional_id, None)
        self._open_since_ms.pop(transactional_id, None)

    # --- what is to be written

    def begin(self, target: Transaction) -> Record:
        """The record of a decision. Until `settle` nothing else is decided of this id."""
        self._note_pending(target.transactional_id, target)
        return transaction_record(target)

    def begin_removal(self, transactional_id: str) -> Record:
        self._note_pending(transactional_id, None)
        return removal_record(transactional_id)

    def _note_pending(self, transactional_id: str, target: Transaction | None) -> None:
        assert transactional_id not in self._pending, "one change of an id is written at a time"
        self._pending[transactional_id] = target

    def settle(self, transactional_id: str, now_ms: int, *, is_acked: bool) -> None:
        """The write is acknowledged, or failed: then all is as before, though the log may hold it."""
        target = self._pending.pop(transactional_id)
        if not is_acked:
            return
        if target is None:
            self._remove(transactional_id)
        else:
            self._put(target, now_ms)

    # --- what is due

    def timed_out(self, now_ms: int) -> list[Transaction]:
        """Open for longer than their producers asked for."""
        opened = (self.transactions[transactional_id] for transactional_id in self._open_since_ms)
        return [each for each in opened if each.transactional_id not in self._pending and self.is_overdue(each, now_ms)]

    def is_overdue(self, transaction: Transaction, now_ms: int) -> bool:
        since_ms = self._open_since_ms.get(transaction.transactional_id)
        return since_ms is not None and since_ms + transaction.timeout_ms <= now_ms

    def expired(self, wall_ms: int, expiration_ms: int) -> list[str]:
        """Ids that nobody has used for the whole time."""
        return [each for each in self.transactions if self.is_expired(each, wall_ms, expiration_ms)]

    def is_expired(self, transactional_id: str, wall_ms: int, expiration_ms: int) -> bool:
        known = self.find(transactional_id)
        if known is None or transactional_id in self._pending:
            return False
        return core.is_expired(known, wall_ms, expiration_ms)
