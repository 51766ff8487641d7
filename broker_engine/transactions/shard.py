"""All transactional ids of one partition of `__transaction_state`, pure: what is acknowledged, what is being written.

`replay` alone changes what is known, so that what a restart reads and what happens live take the same way. Time-outs
count on the monotonic clock, from when this coordinator first knew of the transaction: a new one gives what is open its
full time again, and no clock that jumps aborts anything. Names are physical texts.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from broker_engine.errors import BrokerError, ErrorCode
from broker_engine.names import ROOT, parse_physical
from broker_engine.transactions import core
from broker_engine.transactions.records import Record, decode_key, decode_value, removal_record, transaction_record
from broker_engine.transactions.states import TransactionState
from broker_engine.transactions.transaction import Transaction

IDS_MAX = 200_000
"""Per partition: 200 MiB, and twice that if all are as long as they may be. Ids that nobody uses expire."""
TENANT_IDS_MAX = IDS_MAX // 10
"""Of one tenant, so that none takes the room of all. The root has no such bound."""
ID_BYTES_MAX = 1_024


class TransactionShard:
    def __init__(self, *, ids_max: int = IDS_MAX, tenant_ids_max: int = TENANT_IDS_MAX) -> None:
        self._ids_max = ids_max
        self._tenant_ids_max = tenant_ids_max
        self.transactions: dict[str, Transaction] = {}
        self._pending: dict[str, Transaction | None] = {}
        """What is being written; None: a removal."""
        self._open_since_ms: dict[str, int] = {}
        self._counts: Counter[str] = Counter()
        """By tenant: ids that are known, and changes that are being written."""

    def find(self, transactional_id: str) -> Transaction | None:
        return self.transactions.get(transactional_id)

    def is_pending(self, transactional_id: str) -> bool:
        return transactional_id in self._pending

    def check_new(self, transactional_id: str) -> None:
        """BrokerError if there is no place for one more of this tenant, or for a name like this."""
        if transactional_id in self.transactions:
            return
        if len(transactional_id.encode()) > ID_BYTES_MAX:
            raise BrokerError(ErrorCode.INVALID_REQUEST, f"a transactional id has at most {ID_BYTES_MAX} bytes")
        tenant = _tenant_of(transactional_id)
        if self._counts.total() >= self._ids_max or (tenant != ROOT and self._counts[tenant] >= self._tenant_ids_max):
            raise BrokerError(ErrorCode.POLICY_VIOLATION, "too many transactional ids: use them again, or fewer")

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
        if transactional_id not in self.transactions:
            self._counts[_tenant_of(transactional_id)] += 1
        self.transactions[transactional_id] = transaction
        if transaction.state is TransactionState.ONGOING:
            self._open_since_ms.setdefault(transactional_id, now_ms)
        else:
            self._open_since_ms.pop(transactional_id, None)

    def _remove(self, transactional_id: str) -> None:
        if self.transactions.pop(transactional_id, None) is not None:
            self._count_down(transactional_id)
        self._open_since_ms.pop(transactional_id, None)

    def _count_down(self, transactional_id: str) -> None:
        tenant = _tenant_of(transactional_id)
        self._counts[tenant] -= 1
        if not self._counts[tenant]:
            del self._counts[tenant]

    # --- what is to be written

    def begin(self, target: Transaction) -> Record:
        """The record of a decision. Until `settle` nothing else is decided of this id."""
        record = transaction_record(target)
        self._note_pending(target.transactional_id, target)
        return record

    def begin_removal(self, transactional_id: str) -> Record:
        self._note_pending(transactional_id, None)
        return removal_record(transactional_id)

    def _note_pending(self, transactional_id: str, target: Transaction | None) -> None:
        assert transactional_id not in self._pending, "one change of an id is written at a time"
        self._pending[transactional_id] = target
        self._counts[_tenant_of(transactional_id)] += 1

    def settle(self, transactional_id: str, now_ms: int, *, is_acked: bool) -> None:
        """The write is acknowledged, or failed: then all is as before, though the log may hold it."""
        target = self._pending.pop(transactional_id)
        self._count_down(transactional_id)
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


def _tenant_of(transactional_id: str) -> str:
    try:
        return parse_physical(transactional_id).tenant
    except ValueError:  # none that we wrote: Kafka's ids have slashes as they like
        return ROOT
