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

ONE_IS_ENOUGH, TWO_ARE_NEEDED = (
    PartitionSettings(ack_durability=AckDurability.PAGE_CACHE, min_insync_replicas=count) for count in (1, 2)
)


def batch(sequence: int, *, epoch: int = 0, producer_id: int = 9) -> BatchHeader:
    return batch_header(1, producer_id=producer_id, producer_epoch=epoch, base_sequence=sequence)


def test_the_request_behind_a_refused_one_is_refused_with_it_though_a_replica_has_joined() -> None:
    core = new_core(ONE_IS_ENOUGH)
    assert core.decide_produce(batch(0), -1, NOW_MS) == Append()
    core.on_appended(AppendResult(0, 0, -1), batch(0), NOW_MS)
    core.configure(TWO_ARE_NEEDED)
    assert code_of(core, batch(1)) is ErrorCode.NOT_ENOUGH_REPLICAS
    core.configure(ONE_IS_ENOUGH)
    assert code_of(core, batch(2)) is ErrorCode.NOT_ENOUGH_REPLICAS
    assert core.decide_produce(batch(1), -1, NOW_MS) == Append()
    core.on_appended(AppendResult(1, 1, -1), batch(1), NOW_MS)
    assert code_of(core, batch(3)) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


def test_a_producer_that_really_skipped_is_told_in_the_end() -> None:
    refusals = Refusals()
    refusals.note(batch(5), NOW_MS)
    assert refusals.explain(batch(6), NOW_MS + REMEMBERED_MS - 1)
    assert not refusals.explain(batch(6), NOW_MS + REMEMBERED_MS)


def test_only_what_is_behind_in_the_same_epoch_is_explained() -> None:
    refusals = Refusals()
    refusals.note(batch(5), NOW_MS)
    refusals.note(batch(6), NOW_MS + 1)
    assert refusals.explain(batch(6), NOW_MS + 2)
    assert not refusals.explain(batch(5), NOW_MS + 2)
    assert not refusals.explain(batch(4), NOW_MS + 2)
    assert not refusals.explain(batch(6, epoch=1), NOW_MS + 2)
    assert not refusals.explain(batch(6, producer_id=10), NOW_MS + 2)


def test_the_memory_is_bounded() -> None:
    refusals = Refusals()
    for producer_id in range(PRODUCERS_MAX + 1):
        refusals.note(batch(0, producer_id=producer_id), NOW_MS)
    assert not refusals.explain(batch(1, producer_id=PRODUCERS_MAX), NOW_MS)
    refusals.note(batch(0, producer_id=PRODUCERS_MAX), NOW_MS + REMEMBERED_MS)
    assert refusals.explain(batch(1, producer_id=PRODUCERS_MAX), NOW_MS + REMEMBERED_MS)


def code_of(core: PartitionCore, header: BatchHeader) -> ErrorCode:
    with pytest.raises(BrokerError) as raised:
        core.decide_produce(header, -1, NOW_MS)
    return raised.value.code
