"""What is behind a refused batch of an idempotent producer is refused likewise, and only for a while."""

from __future__ import annotations

import pytest

from broker_engine.errors import BrokerError, ErrorCode
from broker_engine.log.partition_log import AppendResult
from broker_engine.partition.core import Append, PartitionCore
from broker_engine.partition.refusals import PRODUCERS_MAX, REMEMBERED_MS, Refusals
from broker_engine.partition.replica import AckDurability, PartitionSettings
from broker_engine.records.header import BatchHeader
from tests.broker_engine.partition.test_core import NOW_MS, batch_header, new_core
from tests.broker_engine.partition.test_follower_core import new_follower

ONE_IS_ENOUGH, TWO_ARE_NEEDED = (
    PartitionSettings(ack_durability=AckDurability.PAGE_CACHE, min_insync_replicas=count) for count in (1, 2)
)


def batch(sequence: int, *, epoch: int = 0, producer_id: int = 9) -> BatchHeader:
    return batch_header(1, producer_id=producer_id, producer_epoch=epoch, base_sequence=sequence)


def test_the_request_behind_a_refused_one_is_refused_with_it_though_a_replica_has_joined() -> None:
    core = new_core(ONE_IS_ENOUGH)
    core.replicas = (1, 2)
    assert core.decide_produce(batch(0), -1, NOW_MS) == Append()
    core.on_appended(AppendResult(0, 0, -1), batch(0), NOW_MS)
    core.configure(TWO_ARE_NEEDED)
    assert code_of(core, batch(1)) is ErrorCode.NOT_ENOUGH_REPLICAS
    core.configure(ONE_IS_ENOUGH)
    assert code_of(core, batch(2)) is ErrorCode.NOT_ENOUGH_REPLICAS
    assert core.decide_produce(batch(1), -1, NOW_MS) == Append()
    core.on_appended(AppendResult(1, 1, -1), batch(1), NOW_MS)
    assert code_of(core, batch(3)) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


def test_what_is_behind_a_batch_that_the_disk_did_not_take_is_refused_with_its_code() -> None:
    core = new_core(ONE_IS_ENOUGH)
    core.on_appended(AppendResult(0, 0, -1), batch(0), NOW_MS)
    core.note_refused(batch(1), ErrorCode.KAFKA_STORAGE_ERROR, NOW_MS)
    assert code_of(core, batch(2)) is ErrorCode.KAFKA_STORAGE_ERROR
    assert core.decide_produce(batch(1), -1, NOW_MS) == Append()


def test_the_first_batch_of_a_producer_is_the_first_one_that_is_taken() -> None:
    """Of a producer that nobody knows any sequence is taken: its second batch must not come before its first."""
    core = new_core(ONE_IS_ENOUGH)
    core.note_refused(batch(0), ErrorCode.KAFKA_STORAGE_ERROR, NOW_MS)
    assert code_of(core, batch(1)) is ErrorCode.KAFKA_STORAGE_ERROR
    assert core.decide_produce(batch(7, producer_id=10), -1, NOW_MS) == Append()
    assert core.decide_produce(batch(0), -1, NOW_MS) == Append()
    core.on_appended(AppendResult(0, 0, -1), batch(0), NOW_MS)
    assert core.decide_produce(batch(1), -1, NOW_MS) == Append()


def test_what_a_follower_refused_counts_when_it_leads() -> None:
    """A client may hear of the new leader before that one does."""
    follower = new_follower(end=0, committed=0)
    follower.note_refused(batch(0), ErrorCode.NOT_LEADER_OR_FOLLOWER, NOW_MS)
    follower.note_refused(batch(1), ErrorCode.NOT_LEADER_OR_FOLLOWER, NOW_MS)
    core = PartitionCore(
        leader_epoch=4,
        replicas=(1,),
        isr=(1,),
        log_start_offset=0,
        log_end_offset=0,
        durable_end_offset=0,
        settings=ONE_IS_ENOUGH,
        producers=follower.producers,
        refusals=follower.refusals,
    )
    assert code_of(core, batch(2)) is ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert core.decide_produce(batch(0), -1, NOW_MS) == Append()


def new_term(*, now_ms: int) -> PartitionCore:
    """Of a leader that knows of producer 9's sequence 0 from its time as a follower."""
    last = new_core(ONE_IS_ENOUGH)
    last.on_appended(AppendResult(0, 0, -1), batch(0), now_ms)
    return PartitionCore(
        leader_epoch=4,
        replicas=(1,),
        isr=(1,),
        log_start_offset=0,
        log_end_offset=1,
        durable_end_offset=1,
        settings=ONE_IS_ENOUGH,
        producers=last.producers,
        now_ms=now_ms,
    )


def test_a_gap_between_two_leaders_is_nobodys_fault_for_a_while() -> None:
    """librdkafka sends 2 to the new leader while 1, which the last one refused, waits to be sent again."""
    core = new_term(now_ms=NOW_MS)
    assert code_of(core, batch(2)) is ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert core.decide_produce(batch(1), -1, NOW_MS) == Append()
    core.on_appended(AppendResult(1, 1, -1), batch(1), NOW_MS)
    assert core.decide_produce(batch(2), -1, NOW_MS) == Append()
    core.on_appended(AppendResult(2, 2, -1), batch(2), NOW_MS)
    assert code_of(core, batch(4)) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, "it is known to this leader by now"


def test_a_producer_that_skipped_a_sequence_is_told_when_the_term_is_no_longer_new() -> None:
    core = new_term(now_ms=NOW_MS - REMEMBERED_MS)
    assert code_of(core, batch(2)) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


def test_what_comes_too_late_is_out_of_order_with_a_new_leader_too() -> None:
    last = new_core(ONE_IS_ENOUGH)
    for sequence in range(7):
        last.on_appended(AppendResult(sequence, sequence, -1), batch(sequence), NOW_MS)
    core = new_term(now_ms=NOW_MS)
    core.producers = last.producers
    assert code_of(core, batch(1)) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, "and five batches later it is forgotten"


def test_what_a_follower_refused_and_the_leader_took_is_forgotten() -> None:
    follower = new_follower()
    follower.note_refused(batch(0), ErrorCode.NOT_LEADER_OR_FOLLOWER, NOW_MS)
    follower.on_replicated([(batch(0)._replace(base_offset=5), None)], NOW_MS)
    assert not follower.refusals


def test_a_producer_that_really_skipped_is_told_in_the_end() -> None:
    refusals = Refusals()
    refusals.note(batch(5), ErrorCode.NOT_ENOUGH_REPLICAS, NOW_MS)
    assert refusals.explain(batch(6), NOW_MS + REMEMBERED_MS - 1)
    assert not refusals.explain(batch(6), NOW_MS + REMEMBERED_MS)


def test_only_what_is_behind_in_the_same_epoch_is_explained() -> None:
    refusals = Refusals()
    refusals.note(batch(5), ErrorCode.NOT_ENOUGH_REPLICAS, NOW_MS)
    refusals.note(batch(6), ErrorCode.NOT_ENOUGH_REPLICAS, NOW_MS + 1)
    assert refusals.explain(batch(6), NOW_MS + 2)
    assert not refusals.explain(batch(5), NOW_MS + 2)
    assert not refusals.explain(batch(4), NOW_MS + 2)
    assert not refusals.explain(batch(6, epoch=1), NOW_MS + 2)
    assert not refusals.explain(batch(6, producer_id=10), NOW_MS + 2)


def test_the_memory_is_bounded() -> None:
    refusals = Refusals()
    for producer_id in range(PRODUCERS_MAX + 1):
        refusals.note(batch(0, producer_id=producer_id), ErrorCode.NOT_ENOUGH_REPLICAS, NOW_MS)
    assert not refusals.explain(batch(1, producer_id=PRODUCERS_MAX), NOW_MS)
    refusals.note(batch(0, producer_id=PRODUCERS_MAX), ErrorCode.NOT_ENOUGH_REPLICAS, NOW_MS + REMEMBERED_MS)
    assert refusals.explain(batch(1, producer_id=PRODUCERS_MAX), NOW_MS + REMEMBERED_MS)


def code_of(core: PartitionCore, header: BatchHeader, now_ms: int = NOW_MS) -> ErrorCode:
    with pytest.raises(BrokerError) as raised:
        core.decide_produce(header, -1, now_ms)
    return raised.value.code
