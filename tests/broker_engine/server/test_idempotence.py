"""Invariant 34 on one replica: each sequence is appended once, whatever happens to the replica in between.

Over fail-over and truncation of a follower see test_replication.py.
"""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from broker_engine.errors import BrokerError, ErrorCode
from broker_engine.log.config import LogConfig
from broker_engine.partition.replica import restored_producers
from broker_engine.records.builder import NewRecord, build_batch
from tests.broker_engine.log.compacting import run_compaction
from tests.broker_engine.log.harness import ManualClock
from tests.broker_engine.server.one_replica import OneReplica

DAY_MS = 86_400_000
RESTARTS = ("stop", "kill", "power", "caches", "retention", "compaction", "roll")
STEPS = st.one_of(
    st.tuples(st.just("send"), st.integers(1, 3), st.integers(1, 3)),
    st.tuples(st.just("send"), st.integers(1, 3), st.integers(1, 3)),
    st.tuples(st.just("resend"), st.integers(1, 3), st.integers(1, 5)),
    st.tuples(st.sampled_from(RESTARTS), st.just(0), st.just(0)),
)


class Sent:
    """One batch, as its producer remembers it."""

    def __init__(self, producer_id: int, sequence: int, count: int, offset: int) -> None:
        self.producer_id, self.sequence, self.count, self.offset = producer_id, sequence, count, offset


class Run:
    def __init__(self) -> None:
        config = LogConfig(segment_bytes=400, retention_bytes=1200, is_compacting=True)
        self.replica = OneReplica(config)
        self.sent: dict[int, list[Sent]] = {}
        self.are_older_known = True
        """Compaction leaves a producer's last batch only; the four before it are in the snapshots, which are caches."""
        self.has_retention_run = False

    def is_forgotten(self, producer_id: int) -> bool:
        """Retention took all that it wrote, and no snapshot was left."""
        return self.has_retention_run and self.replica.core.producers.find(producer_id) is None

    def send(self, producer_id: int, sequence: int, count: int) -> int:
        key = b"%d" % producer_id
        now_ms = self.replica.clock.now_ms()
        batch = build_batch(
            [NewRecord(now_ms, key, b"%d" % (sequence + number)) for number in range(count)],
            producer_id=producer_id,
            producer_epoch=0,
            base_sequence=sequence,
        )
        return self.replica.append(batch)

    def play(self, step: str, producer_id: int, number: int) -> None:
        sent = self.sent.setdefault(producer_id, [])
        if step == "send":
            sequence = sent[-1].sequence + sent[-1].count if sent else 0
            sent.append(Sent(producer_id, sequence, number, self.send(producer_id, sequence, number)))
            self.replica.flush()
        elif step == "resend" and self.is_forgotten(producer_id):
            sent.clear()
        elif step == "resend" and len(sent) >= number and (self.are_older_known or number == 1):
            earlier, end_offset = sent[-number], self.replica.local.log.log_end_offset
            assert self.send(producer_id, earlier.sequence, earlier.count) == earlier.offset
            assert self.replica.local.log.log_end_offset == end_offset, "nothing was appended"
        else:
            self._happen(step)

    def _happen(self, step: str) -> None:
        replica = self.replica
        match step:
            case "stop":
                replica.stop_and_start()
            case "kill":
                replica.kill_and_start()
            case "power":
                replica.lose_power_and_start()
            case "caches":
                replica.stop_and_start(are_caches_kept=False)
                self.are_older_known = False
            case "retention":
                for segment in replica.local.apply_retention(replica.clock.now_ms()):
                    segment.remove()
                self.are_older_known, self.has_retention_run = False, True
            case "roll":
                replica.local.log.roll()
            case "compaction":
                last_batches = replica.core.producers.last_batches(replica.local.last_stable_offset)
                run_compaction(
                    replica.local.log,
                    now_ms=replica.clock.now_ms(),
                    limit_offset=replica.local.last_stable_offset,
                    last_batches=last_batches,
                )
                self.are_older_known = False


@given(st.lists(STEPS, max_size=40))
@settings(max_examples=120, deadline=None)
def test_whatever_happens_a_resend_is_answered_and_a_gap_is_refused(steps: list[tuple[str, int, int]]) -> None:
    run = Run()
    for step in steps:
        run.play(*step)
    for producer_id, sent in run.sent.items():
        if not sent or run.is_forgotten(producer_id):
            continue
        next_sequence = sent[-1].sequence + sent[-1].count
        with pytest.raises(BrokerError) as raised:
            run.send(producer_id, next_sequence + 1, 1)
        assert raised.value.code is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
        run.play("resend", producer_id, 1)
        run.play("send", producer_id, 1)


def test_five_batches_are_known_after_each_kind_of_restart() -> None:
    for restart in ("stop_and_start", "kill_and_start", "lose_power_and_start"):
        run = Run()
        for _ in range(7):
            run.play("send", 1, 2)
        getattr(run.replica, restart)()
        for back in range(1, 6):
            run.play("resend", 1, back)
        with pytest.raises(BrokerError) as raised:
            run.send(1, 0, 2)
        assert raised.value.code is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


def test_a_cut_takes_back_what_was_cut_and_nothing_else() -> None:
    run = Run()
    for _ in range(6):
        run.play("send", 1, 1)
    local = run.replica.local
    local.log.truncate_to(4)
    producers = type(run.replica.core.producers)()
    restored_producers(producers, local.log.producer_snapshots(), local.log.iter_batches, 0)
    producer = producers.find(1)
    assert producer is not None
    assert [batch.base_offset for batch in producer.batches] == [0, 1, 2, 3]
    assert producer.next_sequence == 4


def test_after_compaction_without_snapshots_the_sequence_goes_on_and_the_last_batch_is_known() -> None:
    run = Run()
    for _ in range(6):
        run.play("send", 1, 2)
    run.play("send", 2, 1)
    run.play("roll", 0, 0)
    run.play("compaction", 0, 0)
    run.play("caches", 0, 0)
    run.play("resend", 1, 1)
    run.play("send", 1, 1)


def test_an_idle_producer_is_forgotten_after_its_time_and_may_begin_anywhere() -> None:
    replica = OneReplica(producer_expiration_ms=DAY_MS)
    clock = replica.clock
    assert isinstance(clock, ManualClock)
    replica.send(1, b"a", is_plain=True)
    clock.time_ms += DAY_MS + 1
    replica.send(2, b"b", is_plain=True)
    assert replica.core.producers.find(1) is None
    batch = build_batch([NewRecord(clock.now_ms(), None, b"c")], producer_id=1, producer_epoch=0, base_sequence=500)
    assert replica.append(batch) == 2


def test_an_open_transaction_outlives_the_producers_time() -> None:
    replica = OneReplica(producer_expiration_ms=DAY_MS)
    clock = replica.clock
    assert isinstance(clock, ManualClock)
    replica.send(1, b"a")
    clock.time_ms += 3 * DAY_MS
    replica.send(2, b"b", is_plain=True)
    assert replica.core.producers.is_open(1, 0)
    replica.end(1, is_commit=True)
    replica.flush()
    assert replica.committed_values() == [b"a", b"b"]
