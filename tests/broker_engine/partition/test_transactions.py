"""Transactions in one partition: what may begin one, what ends it, and what is stable meanwhile."""

from __future__ import annotations

import pytest

from broker_engine.errors import BrokerError, ErrorCode
from broker_engine.log.partition_log import AppendResult
from broker_engine.partition.core import (
    AckDurability,
    AdvanceHighWatermark,
    Duplicate,
    Effect,
    NeedFlush,
    NoteAborted,
    PartitionCore,
    PartitionSettings,
)
from broker_engine.partition.producers import ProducerStates
from broker_engine.partition.verification import PRODUCERS_MAX, Guard, Verifications
from broker_engine.records.batch import BatchHeader, parse_header
from broker_engine.records.builder import NewRecord, build_batch
from broker_engine.records.control import EndedTransaction, TxnMarker, marker_batch

NOW_MS = 1_700_000_000_000


def header(
    sequence: int, *, count: int = 1, epoch: int = 0, producer_id: int = 9, is_plain: bool = False
) -> BatchHeader:
    batch = build_batch(
        [NewRecord(NOW_MS, None, b"v")] * count,
        producer_id=producer_id,
        producer_epoch=epoch,
        base_sequence=sequence,
        is_transactional=not is_plain,
    )
    return parse_header(batch)


class Story:
    """One leader's log. Answers are offsets, repeated offsets, or the names of codes."""

    def __init__(self, durability: AckDurability = AckDurability.PAGE_CACHE) -> None:
        self.core = PartitionCore(
            leader_epoch=3,
            replicas=(1,),
            isr=(1,),
            log_start_offset=0,
            log_end_offset=0,
            durable_end_offset=0,
            settings=PartitionSettings(ack_durability=durability),
        )
        self.effects: list[Effect] = []

    def verify(self, sequence: int = 0, *, is_adding: bool = False, **identity: int) -> Guard | None:
        return self.core.producers.begin_verification(header(sequence, **identity), is_adding=is_adding)

    def send(self, sequence: int, guard: Guard | None = None, *, is_plain: bool = False, **options: int) -> str:
        batch = header(sequence, is_plain=is_plain, **options)
        try:
            decision = self.core.decide_produce(batch, -1, NOW_MS, guard)
        except BrokerError as error:
            return error.code.name
        if isinstance(decision, Duplicate):
            return f"again {decision.base_offset}"
        return self._append(batch)

    def begin(self, sequence: int = 0, **options: int) -> str:
        return self.send(sequence, self.verify(sequence, **options), **options)

    def end(
        self, *, is_commit: bool, producer_id: int = 9, epoch: int = 0, coordinator_epoch: int = 5, version: int = 1
    ) -> str:
        marker = TxnMarker(is_commit, coordinator_epoch)
        try:
            self.core.check_marker(producer_id, epoch, marker, version)
        except BrokerError as error:
            return error.code.name
        return self._append(parse_header(marker_batch(producer_id, epoch, marker, NOW_MS)), marker)

    def _append(self, batch: BatchHeader, marker: TxnMarker | None = None) -> str:
        base_offset = self.core.log_end_offset
        result = AppendResult(base_offset, base_offset + batch.last_offset_delta, -1)
        self.effects = self.core.on_appended(result, batch, NOW_MS, marker)
        return f"at {base_offset}"

    @property
    def stable(self) -> int:
        return self.core.last_stable_offset


# --- what is stable


def test_what_an_open_transaction_wrote_is_not_stable_nor_is_anything_behind_it() -> None:
    story = Story()
    assert story.send(0, producer_id=1, is_plain=True) == "at 0"
    assert story.stable == 1
    assert story.begin() == "at 1"
    assert story.send(1, producer_id=1, is_plain=True) == "at 2"
    assert (story.stable, story.core.high_watermark) == (1, 3)
    assert story.end(is_commit=True) == "at 3"
    assert story.stable == 4


def test_the_oldest_open_transaction_holds_the_rest_back() -> None:
    story = Story()
    story.begin(producer_id=1)
    story.begin(producer_id=2)
    story.end(is_commit=True, producer_id=2)
    assert story.stable == 0
    story.begin(1, producer_id=2)
    story.end(is_commit=False, producer_id=1)
    assert story.stable == 3, "the second one's next transaction"


def test_a_marker_counts_once_it_is_committed() -> None:
    story = Story(AckDurability.FSYNC)
    story.begin()
    story.core.on_flushed(1)
    story.end(is_commit=True)
    assert (story.core.high_watermark, story.stable) == (1, 0), "a crash may take the marker"
    story.core.on_flushed(2)
    assert story.stable == 2


def test_compaction_counts_on_a_marker_once_it_is_on_disk() -> None:
    story = Story()
    story.begin()
    story.core.on_flush_begun()
    story.core.on_flushed(1)
    story.end(is_commit=True)
    assert (story.stable, story.core.cleanable_offset) == (2, 0), "the flush that there was did not cover it"
    story.core.on_flush_begun()
    story.begin(1)
    story.core.on_flushed(2)
    assert story.core.cleanable_offset == 2


def test_an_aborted_transaction_is_indexed_before_readers_are_told() -> None:
    story = Story()
    story.begin()
    story.end(is_commit=False)
    assert story.effects == [NoteAborted(EndedTransaction(9, 0, 1, 2, is_aborted=True)), AdvanceHighWatermark(2)]
    story = Story(AckDurability.FSYNC)
    story.begin()
    story.end(is_commit=True)
    assert story.effects == [NeedFlush()], "a committed one is not in that index"


def test_records_deleted_from_under_an_open_transaction_leave_the_stable_offset_at_the_logs_start() -> None:
    story = Story()
    story.begin(count=5)
    story.core.on_log_start(3)
    assert (story.core.log_start_offset, story.stable) == (3, 3)


# --- what may begin a transaction


def test_a_batch_that_nobody_verified_begins_no_transaction() -> None:
    story = Story()
    assert story.send(0) == "INVALID_TXN_STATE"
    assert story.begin() == "at 0"
    assert story.send(1) == "at 1", "an open one needs no more words"


def test_a_batch_that_was_verified_before_the_marker_came_is_refused_after_it() -> None:
    """KIP-890: it would open a transaction that its coordinator has ended, and that nobody would ever end."""
    story = Story()
    late = story.verify()
    assert story.end(is_commit=False) == "at 0"
    assert story.send(0, late) == "INVALID_TXN_STATE"
    assert story.stable == 1


def test_batches_under_verification_share_a_guard_and_the_first_one_uses_it_up() -> None:
    story = Story()
    first, second = story.verify(0), story.verify(1)
    assert first is second
    assert story.send(1, second) == "OUT_OF_ORDER_SEQUENCE_NUMBER", "the earlier one is on its way"
    assert story.send(0, first) == "at 0"
    assert story.verify(1) is None
    assert story.send(1) == "at 1"
    story.end(is_commit=True)
    assert story.send(2, second) == "INVALID_TXN_STATE"


def test_a_resend_of_a_transaction_that_ended_answers_its_offset() -> None:
    story = Story()
    story.begin()
    story.end(is_commit=True)
    assert story.verify(0) is None
    assert story.send(0) == "again 0"


def test_a_new_epoch_needs_a_word_of_its_own() -> None:
    story = Story()
    story.begin()
    assert story.send(0, epoch=1) == "INVALID_TXN_STATE"
    assert story.begin(epoch=1) == "at 1"
    assert story.send(1, epoch=0) == "INVALID_TXN_STATE"


def test_a_plain_batch_inside_of_the_producers_transaction_is_refused() -> None:
    story = Story()
    story.begin()
    assert story.send(1, is_plain=True) == "INVALID_TXN_STATE"
    assert story.send(0, producer_id=1, is_plain=True) == "at 1", "others may"
    story.end(is_commit=True)
    assert story.send(1, is_plain=True) == "at 3"


def test_an_unknown_producer_of_version_2_begins_with_sequence_0() -> None:
    assert Story().begin(7) == "at 0"
    story = Story()
    assert story.send(7, story.verify(7, is_adding=True)) == "OUT_OF_ORDER_SEQUENCE_NUMBER"
    assert story.send(0, story.verify(0, is_adding=True)) == "at 0"


def test_what_a_coordinator_writes_in_a_transaction_has_an_epoch_and_no_sequence() -> None:
    story = Story()
    batch = header(-1)
    with pytest.raises(BrokerError) as raised:
        story.core.check_coordinated(batch, None)
    assert raised.value.code is ErrorCode.INVALID_TXN_STATE
    story.core.check_coordinated(batch, story.core.producers.verifications.begin(batch, is_adding=False))
    story._append(batch)
    story.core.check_coordinated(batch, None)
    story.end(is_commit=True, epoch=1)
    with pytest.raises(BrokerError):
        story.core.check_coordinated(batch, None)


def test_the_memory_for_verifications_is_bounded() -> None:
    verifications = Verifications()
    guards = [
        verifications.begin(header(0, producer_id=number), is_adding=False) for number in range(PRODUCERS_MAX + 1)
    ]
    verifications.check(header(0, producer_id=PRODUCERS_MAX), guards[-1])
    with pytest.raises(BrokerError):
        verifications.check(header(0, producer_id=0), guards[0])


def test_a_transaction_is_somebodys() -> None:
    assert Story().send(-1, producer_id=-1, epoch=-1) == "INVALID_RECORD"


# --- markers


def test_a_marker_of_an_earlier_epoch_or_coordinator_is_refused() -> None:
    story = Story()
    story.begin(epoch=4)
    assert story.end(is_commit=True, epoch=3) == "INVALID_PRODUCER_EPOCH"
    assert story.end(is_commit=True, epoch=4, coordinator_epoch=7) == "at 1"
    assert story.end(is_commit=True, epoch=4, coordinator_epoch=6) == "TRANSACTION_COORDINATOR_FENCED"
    assert story.end(is_commit=True, epoch=4, coordinator_epoch=7) == "at 2", "a repeated one is no harm"


def test_a_marker_for_somebody_unknown_is_taken() -> None:
    story = Story()
    assert story.end(is_commit=False) == "at 0"
    assert story.stable == 1


def test_a_marker_of_version_2_is_above_the_transactions_epoch_and_may_be_repeated() -> None:
    story = Story()
    story.begin()
    assert story.end(is_commit=True, epoch=0, version=2) == "INVALID_PRODUCER_EPOCH"
    assert story.end(is_commit=True, epoch=1, version=2) == "at 1"
    assert story.end(is_commit=True, epoch=1, version=2) == "at 2"


def test_a_marker_with_a_raised_epoch_fences_and_begins_sequences_anew() -> None:
    story = Story()
    story.begin()
    story.end(is_commit=True, epoch=1)
    assert story.begin(1, epoch=0) == "INVALID_PRODUCER_EPOCH"
    assert story.begin(1, epoch=1) == "OUT_OF_ORDER_SEQUENCE_NUMBER"
    assert story.begin(0, epoch=1) == "at 2"


def test_below_min_insync_no_marker_is_taken() -> None:
    story = Story()
    story.core.replicas = (1, 2)
    story.core.configure(PartitionSettings(min_insync_replicas=2))
    assert story.end(is_commit=True) == "NOT_ENOUGH_REPLICAS"


# --- what a restart knows


def test_a_snapshot_keeps_open_transactions_and_what_raised_the_epoch() -> None:
    story = Story()
    story.begin(producer_id=1)
    story.begin(producer_id=2)
    story.end(is_commit=True, producer_id=2, epoch=1)
    restored = ProducerStates()
    restored.restore(list(story.core.producers.entries()), NOW_MS)
    assert restored.is_open(1, 0)
    assert not restored.is_open(2, 0)
    assert restored.first_unstable_offset == 0
    producer = restored.find(2)
    assert producer is not None
    assert (producer.epoch, producer.coordinator_epoch, producer.last_sequence) == (1, 5, -1)
