"""A damaged log does not tell what producers did last: who may have sent what is lost waits until it is mended."""

from __future__ import annotations

from broker_engine.errors import ErrorCode
from broker_engine.partition.core import Append, Duplicate, PartitionCore
from broker_engine.partition.refusals import REMEMBERED_MS
from broker_engine.records.header import BatchHeader
from tests.broker_engine.partition.test_core import NOW_MS, batch_header, new_core
from tests.broker_engine.partition.test_refusals import ONE_IS_ENOUGH, code_of

END_OFFSET = 10


def batch(sequence: int, *, at: int = 0, producer_id: int = 9, epoch: int = 0) -> BatchHeader:
    header = batch_header(1, producer_id=producer_id, producer_epoch=epoch, base_sequence=sequence)
    return header._replace(base_offset=at)


def restored(*read: BatchHeader, unread_end_offset: int, replicas: tuple[int, ...] = (1, 2)) -> PartitionCore:
    """A leader that could read these batches of its log, and all from `unread_end_offset` on."""
    core = new_core(ONE_IS_ENOUGH, log_end_offset=END_OFFSET, replicas=replicas, now_ms=NOW_MS)
    core.restore((), lambda _: ((header, None) for header in read), NOW_MS, unread_end_offset=unread_end_offset)
    return core


def test_a_resend_of_what_was_damaged_is_known_as_one_when_it_is_mended() -> None:
    core = restored(unread_end_offset=5)
    assert code_of(core, batch(7)) is ErrorCode.NOT_LEADER_OR_FOLLOWER
    core.on_mended([batch(6, at=3), batch(7, at=4)], NOW_MS, is_whole=True)
    decision = core.decide_produce(batch(7), -1, NOW_MS)
    assert isinstance(decision, Duplicate)
    assert decision.base_offset == 4
    assert core.decide_produce(batch(8), -1, NOW_MS) == Append()


def test_a_gap_that_only_the_damage_showed_is_out_of_order_when_it_is_mended() -> None:
    core = restored(unread_end_offset=5)
    core.on_mended([batch(6, at=4)], NOW_MS, is_whole=True)
    assert code_of(core, batch(8), NOW_MS + REMEMBERED_MS) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


def test_who_is_known_from_before_the_damage_waits_too_and_who_sent_something_behind_it_does_not() -> None:
    core = restored(batch(0, at=0), batch(0, at=6, producer_id=10), unread_end_offset=5)
    assert code_of(core, batch(1)) is ErrorCode.NOT_LEADER_OR_FOLLOWER, "it may be one of those that are damaged"
    assert core.decide_produce(batch(1, producer_id=10), -1, NOW_MS) == Append()
    assert core.decide_produce(batch_header(1), -1, NOW_MS) == Append(), "without a producer id nobody compares"
    assert core.run_length([batch(1)], -1, NOW_MS) == 0


def test_batches_that_are_mended_take_their_place_between_those_that_are_known() -> None:
    core = restored(batch(0, at=0), batch(3, at=6), unread_end_offset=5)
    core.on_mended([batch(1, at=2), batch(2, at=4)], NOW_MS, is_whole=False)
    core.on_mended([batch(2, at=4)], NOW_MS, is_whole=True)
    producer = core.producers.find(9)
    assert producer is not None
    assert [(each.first_sequence, each.base_offset) for each in producer.batches] == [(0, 0), (1, 2), (2, 4), (3, 6)]


def test_an_older_life_of_a_producer_is_not_brought_back() -> None:
    core = restored(batch(0, at=6, epoch=2), unread_end_offset=5)
    core.on_mended([batch(4, at=4, epoch=1)], NOW_MS, is_whole=True)
    assert core.decide_produce(batch(1, epoch=2), -1, NOW_MS) == Append()


def test_a_newer_life_that_was_damaged_replaces_the_one_that_was_read() -> None:
    core = restored(batch(8, at=0, epoch=1), unread_end_offset=5)
    core.on_mended([batch(0, at=4, epoch=2)], NOW_MS, is_whole=True)
    assert code_of(core, batch(9, epoch=1)) is ErrorCode.INVALID_PRODUCER_EPOCH


def test_nobody_waits_for_ever_or_for_the_only_copy() -> None:
    core = restored(unread_end_offset=5)
    assert core.decide_produce(batch(7), -1, NOW_MS + REMEMBERED_MS) == Append()
    assert restored(unread_end_offset=5, replicas=(1,)).decide_produce(batch(7), -1, NOW_MS) == Append()


def test_no_snapshot_is_made_of_what_is_known_in_part() -> None:
    core = restored(unread_end_offset=5)
    assert core.pack_producers() is None
    core.on_mended([], NOW_MS, is_whole=True)
    assert core.pack_producers() is not None


def test_a_snapshot_behind_the_damage_knows_everything() -> None:
    packed = restored(batch(3, at=4), unread_end_offset=0).pack_producers()
    assert packed is not None
    core = restored(unread_end_offset=0)
    core.restore([(5, packed)], lambda _: (), NOW_MS, unread_end_offset=5)
    assert core.decide_produce(batch(4), -1, NOW_MS) == Append()


def test_what_rots_later_is_no_loss_of_what_was_known() -> None:
    core = restored(batch(0, at=4), unread_end_offset=0)
    core.on_mended([batch(0, at=4)], NOW_MS, is_whole=True)
    assert core.decide_produce(batch(1), -1, NOW_MS) == Append()
