"""A reader of committed records may come between any two steps by which a segment takes another's place."""

from __future__ import annotations

import dataclasses

import pytest

from broker_engine.log.damage import Hole
from broker_engine.log.files import Files
from broker_engine.log.txn_index import AbortedTransaction
from broker_engine.records.builder import NewRecord, build_batch
from tests.broker_engine.log.compacting import run_compaction
from tests.broker_engine.log.test_txn_index import TransactionalLog


class Account(TransactionalLog):
    """Committed once, then overwritten by an aborted transaction; more follows than one compaction has room for."""

    def __init__(self, files: Files) -> None:
        super().__init__(files)
        changes = {"segment_bytes": 2500, "is_compacting": True, "min_cleanable_dirty_ratio": 0.0}
        self.harness.config = self.log.config = dataclasses.replace(self.log.config, **changes)
        self.sequence = 0
        self.put(b"a", b"old")
        self.put(b"a", b"new")
        self.put(b"balance", b"committed")
        self.put(b"balance", b"aborted", is_commit=False)
        for number in range(16):
            self.put(b"other%d" % number, b"v" * 20)
        self.harness.flush()

    def put(self, key: bytes, value: bytes, *, is_commit: bool = True) -> None:
        batch = build_batch(
            [NewRecord(1000, key, value)],
            producer_id=1,
            producer_epoch=0,
            base_sequence=self.sequence,
            is_transactional=True,
        )
        self.sequence += 1
        self._append(batch)
        self.end(1, is_commit=is_commit)

    def aborted(self) -> list[AbortedTransaction]:
        return self.log.aborted_transactions(0, self.log.log_end_offset)

    def balance(self) -> list[bytes | None]:
        aborted = self.aborted()
        return [
            record.value
            for record in self.harness.records()
            if record.key == b"balance"
            and not any(each.first_offset <= record.offset < each.last_offset for each in aborted)
        ]


@pytest.fixture
def account(files: Files) -> Account:
    return Account(files)


def test_a_reader_during_a_compaction_sees_what_was_committed_then_and_ever_after(account: Account) -> None:
    seen = []

    def look(step: str) -> None:
        seen.append(account.balance())

    run_compaction(account.log, now_ms=account.harness.clock.now_ms() + 1, keys_max=2, on_step=look)
    run_compaction(account.log, now_ms=account.harness.clock.now_ms() + 2, on_step=look)
    end_offset = account.log.log_end_offset
    account.log.close()
    account.harness.open(recovery_point=end_offset)
    look("after a restart")
    assert seen == [[b"committed"]] * len(seen)


def test_a_reader_during_a_mending_takes_nothing_from_later_ones(account: Account) -> None:
    segment = account.log._segments[0]
    batch = list(segment.batches_near(0))[1]
    patch = segment.read_batch(batch)
    hole = Hole(batch.header.base_offset, batch.header.next_offset, batch.position, batch.end_position)
    segment.holes = [hole]
    mending = account.log.mending_of(0, {hole: patch})
    assert mending is not None
    mending.clean()
    assert account.log.swap_in(mending) is not None
    assert account.aborted() == account.expected
    mending.finish()
    account.log.settle(mending)
    account.log.on_mended(mending.patched())
    mending.release()
    assert account.aborted() == account.expected
