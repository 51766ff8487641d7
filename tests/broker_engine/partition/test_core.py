"""The leader's decisions: what is committed when, in both durability modes."""

from __future__ import annotations

import pytest

from broker_engine.errors import BrokerError, ErrorCode
from broker_engine.log.partition_log import AppendResult
from broker_engine.partition.core import (
    AckDurability,
    AdvanceHighWatermark,
    Append,
    Duplicate,
    Effect,
    NeedFlush,
    PartitionCore,
    PartitionSettings,
)
from broker_engine.records.batch import BatchHeader, parse_header
from broker_engine.records.builder import NewRecord, build_batch

NOW_MS = 1_700_000_000_000
FSYNC = PartitionSettings(ack_durability=AckDurability.FSYNC)
PAGE_CACHE = PartitionSettings(ack_durability=AckDurability.PAGE_CACHE)


def new_core(
    settings: PartitionSettings, *, log_end_offset: int = 0, replicas: tuple[int, ...] = (1,), now_ms: int = 0
) -> PartitionCore:
    return PartitionCore(
        leader_epoch=3,
        replicas=replicas,
        isr=(1,),
        log_start_offset=0,
        log_end_offset=log_end_offset,
        durable_end_offset=log_end_offset,
        settings=settings,
        now_ms=now_ms,
    )


def batch_header(count: int = 1, **identity: int) -> BatchHeader:
    return parse_header(build_batch([NewRecord(NOW_MS, None, b"v")] * count, **identity))  # type: ignore[arg-type]


def append(core: PartitionCore, header: BatchHeader) -> list[Effect]:
    assert core.decide_produce(header, -1, NOW_MS) == Append()
    base_offset = core.log_end_offset
    return core.on_appended(AppendResult(base_offset, base_offset + header.last_offset_delta, -1), header, NOW_MS)


def test_in_page_cache_mode_a_record_is_committed_when_written() -> None:
    core = new_core(PAGE_CACHE)
    assert append(core, batch_header(3)) == [AdvanceHighWatermark(3)]
    assert core.is_committed(2)
    assert (core.high_watermark, core.last_stable_offset, core.durable_end_offset) == (3, 3, 0)


def test_in_fsync_mode_a_record_is_committed_when_durable() -> None:
    core = new_core(FSYNC)
    assert append(core, batch_header(2)) == [NeedFlush()]
    assert append(core, batch_header(2)) == [NeedFlush()]
    assert not core.is_committed(0)
    assert core.on_flushed(2) == [AdvanceHighWatermark(2)]
    assert (core.is_committed(1), core.is_committed(2)) == (True, False)
    assert core.on_flushed(4) == [AdvanceHighWatermark(4)]


def test_a_restarted_leader_shows_what_its_log_holds() -> None:
    assert new_core(FSYNC, log_end_offset=7).high_watermark == 7
    assert new_core(PAGE_CACHE, log_end_offset=7).high_watermark == 7


def test_the_high_watermark_stays_when_the_mode_turns_to_fsync_and_moves_when_it_turns_back() -> None:
    core = new_core(PAGE_CACHE)
    append(core, batch_header(2))
    assert core.configure(FSYNC) == [NeedFlush()]
    assert core.high_watermark == 2
    append(core, batch_header(1))
    assert core.on_flushed(2) == []
    assert core.high_watermark == 2
    assert core.configure(PAGE_CACHE) == [AdvanceHighWatermark(3)]


def test_too_few_in_sync_replicas_refuse_acks_all_and_freeze_the_high_watermark() -> None:
    settings = PartitionSettings(ack_durability=AckDurability.PAGE_CACHE, min_insync_replicas=2)
    core = new_core(settings, replicas=(1, 2))
    with pytest.raises(BrokerError) as raised:
        core.decide_produce(batch_header(), -1, NOW_MS)
    assert raised.value.code == ErrorCode.NOT_ENOUGH_REPLICAS
    assert core.decide_produce(batch_header(), 1, NOW_MS) == Append()
    assert core.on_appended(AppendResult(0, 0, -1), batch_header(), NOW_MS) == []
    assert core.high_watermark == 0


@pytest.mark.parametrize(("epoch", "code"), [(2, ErrorCode.FENCED_LEADER_EPOCH), (4, ErrorCode.UNKNOWN_LEADER_EPOCH)])
def test_another_idea_of_the_leader_epoch_is_refused(epoch: int, code: ErrorCode) -> None:
    core = new_core(FSYNC)
    with pytest.raises(BrokerError) as raised:
        core.check_leader_epoch(epoch)
    assert raised.value.code == code
    core.check_leader_epoch(3)
    core.check_leader_epoch(-1)


def test_a_resend_answers_the_first_offsets_and_the_stored_timestamp() -> None:
    core = new_core(FSYNC)
    header = batch_header(2, producer_id=9, producer_epoch=0, base_sequence=0)
    append(core, batch_header(5))
    append(core, header)
    assert core.decide_produce(header, -1, NOW_MS) == Duplicate(5, 6, NOW_MS)
    assert core.log_end_offset == 7


def test_a_resend_under_log_append_time_answers_the_time_of_the_append() -> None:
    core = new_core(FSYNC)
    header = batch_header(1, producer_id=9, producer_epoch=0, base_sequence=0)
    core.on_appended(AppendResult(0, 0, NOW_MS + 50), header, NOW_MS + 50)
    assert core.decide_produce(header, -1, NOW_MS + 60) == Duplicate(0, 0, NOW_MS + 50)


def test_a_new_leader_life_knows_the_producers_from_the_log() -> None:
    headers = [
        batch_header(2, producer_id=9, producer_epoch=1, base_sequence=0)._replace(base_offset=0),
        batch_header(1, producer_id=9, producer_epoch=1, base_sequence=2)._replace(base_offset=2),
    ]
    core = new_core(FSYNC, log_end_offset=3)
    core.replay(headers, NOW_MS)
    assert core.decide_produce(headers[0], -1, NOW_MS) == Duplicate(0, 1, NOW_MS)
    with pytest.raises(BrokerError) as raised:
        core.decide_produce(batch_header(1, producer_id=9, producer_epoch=1, base_sequence=4), -1, NOW_MS)
    assert raised.value.code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


def test_a_high_watermark_never_moves_back() -> None:
    core = new_core(FSYNC, log_end_offset=5)
    assert core.on_flushed(3) == []
    assert (core.high_watermark, core.durable_end_offset) == (5, 5)


def test_the_log_start_moves_up_to_the_high_watermark() -> None:
    core = new_core(FSYNC, log_end_offset=5)
    core.on_log_start(5)
    assert core.log_start_offset == 5
    with pytest.raises(AssertionError):
        core.on_log_start(6)
