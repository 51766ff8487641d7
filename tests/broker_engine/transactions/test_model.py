"""Random producers on one transactional id: whatever they ask, in whatever order, fencing and outcomes hold."""

from __future__ import annotations

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from broker_engine.errors import ErrorCode
from broker_engine.transactions import core
from broker_engine.transactions.core import InitAsk, Verdict
from broker_engine.transactions.records import transaction_record
from broker_engine.transactions.shard import TransactionShard
from broker_engine.transactions.states import TransactionState
from broker_engine.transactions.transaction import EPOCH_MAX, VERSION_2, Producer, Transaction

S = TransactionState
NAME = "t"
VERSIONS = st.sampled_from([0, VERSION_2])


class OneId(RuleBasedStateMachine):
    """A shard, what was decided and not yet acknowledged, every producer that was ever told an id and epoch."""

    def __init__(self) -> None:
        super().__init__()
        self.shard = TransactionShard()
        self.told: list[Producer] = [Producer(0, 0)]
        self.next_id = 1
        self.waiting: Verdict | None = None
        self.newest = Producer(-1, -1)
        self.now_ms = 0

    @property
    def known(self) -> Transaction | None:
        return self.shard.find(NAME)

    def take(self, verdict: Verdict) -> None:
        self.next_id += 1
        assert not verdict.needs_producer_id
        if verdict.store is not None:
            assert not self.shard.is_pending(NAME), "one change at a time"
            self.shard.begin(verdict.store)
            self.waiting = verdict

    @rule(expected=st.none() | st.integers(0, 30))
    def init(self, expected: int | None) -> None:
        producer = None if expected is None else self.told[expected % len(self.told)]
        pending = self.shard.is_pending(NAME)
        ask = InitAsk(NAME, 60_000, producer)
        self.take(core.init_producer_id(self.known, ask, self.now_ms, is_pending=pending, spare_id=self.next_id))

    @rule(who=st.integers(0, 30), partition=st.integers(0, 3), version=VERSIONS)
    def add(self, who: int, partition: int, version: int) -> None:
        producer, pending = self.told[who % len(self.told)], self.shard.is_pending(NAME)
        verdict = core.add_partitions(
            self.known, producer, [("orders", partition)], self.now_ms, is_pending=pending, client_version=version
        )
        if verdict.code is ErrorCode.NONE:
            assert self.known is not None
            assert producer == self.known.producer, "only the current producer opens or widens a transaction"
        self.take(verdict)

    @rule(who=st.integers(0, 30), is_commit=st.booleans(), version=VERSIONS)
    def end(self, who: int, is_commit: bool, version: int) -> None:
        producer, pending = self.told[who % len(self.told)], self.shard.is_pending(NAME)
        verdict = core.end(
            self.known,
            producer,
            self.now_ms,
            is_commit=is_commit,
            is_pending=pending,
            client_version=version,
            spare_id=self.next_id,
        )
        if verdict.store is not None:
            assert self.known is not None
            assert producer == self.known.producer, "only the current producer ends a transaction"
        self.take(verdict)

    @precondition(lambda self: self.waiting is not None)
    @rule(is_acked=st.booleans())
    def settle(self, is_acked: bool) -> None:
        before, verdict = self.known, self.waiting
        assert verdict is not None
        self.waiting = None
        self.shard.settle(NAME, self.now_ms, is_acked=is_acked)
        if not is_acked:
            assert self.known is before
        elif verdict.code is ErrorCode.NONE and verdict.producer.id >= 0:
            self.told.append(verdict.producer)

    @precondition(lambda self: self.known is not None and self.known.state.is_preparing and self.waiting is None)
    @rule(is_acked=st.booleans())
    def complete(self, is_acked: bool) -> None:
        assert self.known is not None
        outcome = self.known.is_commit
        self.shard.begin(core.completed(self.known, self.now_ms))
        self.shard.settle(NAME, self.now_ms, is_acked=is_acked)
        assert self.known.is_commit == outcome, "an outcome never changes"

    @precondition(lambda self: self.known is not None and self.known.state is S.ONGOING and self.waiting is None)
    @rule()
    def time_out(self) -> None:
        assert self.known is not None
        self.take(core.timed_out(self.known, self.now_ms, self.next_id))

    @rule(is_written=st.booleans())
    def fail_over(self, is_written: bool) -> None:
        """Another coordinator has what was acknowledged, and maybe what was being written, of which nobody was told."""
        fresh = TransactionShard()
        for transaction in (self.known, self.waiting.store if self.waiting is not None and is_written else None):
            if transaction is not None:
                fresh.replay(*transaction_record(transaction), self.now_ms)
        self.shard, self.waiting = fresh, None

    @rule(by_ms=st.integers(-5, 50))
    def time_goes_on(self, by_ms: int) -> None:
        self.now_ms = max(0, self.now_ms + by_ms)

    @rule()
    def wear_out(self) -> None:
        """Epochs near their end are seldom reached by counting."""
        known = self.known
        if known is not None and self.waiting is None and known.state.is_over and known.producer_epoch < EPOCH_MAX - 3:
            worn = known.moved(S.EMPTY, self.now_ms, producer_epoch=EPOCH_MAX - 2, partitions=(), started_ms=-1)
            self.shard.begin(worn)
            self.shard.settle(NAME, self.now_ms, is_acked=True)

    @invariant()
    def epochs_only_grow(self) -> None:
        if self.known is not None:
            producer = self.known.producer
            is_later = producer.id > self.newest.id or producer >= self.newest
            assert is_later, f"{producer} after {self.newest}"
            self.newest = producer

    @invariant()
    def nobody_is_told_an_epoch_that_cannot_be_fenced(self) -> None:
        assert all(producer.epoch <= EPOCH_MAX for producer in self.told)

    @invariant()
    def partitions_stand_exactly_where_a_transaction_is(self) -> None:
        if self.known is not None and self.known.state.is_over:
            assert self.known.partitions == ()


TestOneId = OneId.TestCase
TestOneId.settings = settings(max_examples=150, stateful_step_count=40, deadline=None)
