"""A follower's decisions: what it takes over, what it knows to be committed, where it cuts."""

from __future__ import annotations

from broker_engine.partition.core import AckDurability, AdvanceHighWatermark, NeedFlush, PartitionSettings
from broker_engine.partition.follower_core import FollowerCore
from broker_engine.partition.producers import ProducerStates
from broker_engine.records.batch import BatchHeader, parse_header
from broker_engine.records.builder import NewRecord, build_batch

NOW_MS = 1_700_000_000_000


def new_follower(durability: AckDurability = AckDurability.PAGE_CACHE, **offsets: int) -> FollowerCore:
    return FollowerCore(
        leader_epoch=3,
        replicas=(1, 2),
        isr=(1, 2),
        log_start_offset=offsets.get("start", 0),
        log_end_offset=offsets.get("end", 5),
        durable_end_offset=offsets.get("end", 5),
        high_watermark=offsets.get("committed", 2),
        settings=PartitionSettings(ack_durability=durability),
    )


def header_at(offset: int, count: int = 1, **identity: int) -> BatchHeader:
    batch = build_batch([NewRecord(NOW_MS, None, b"v")] * count, **identity)  # type: ignore[arg-type]
    return parse_header(batch)._replace(base_offset=offset)


def test_the_high_watermark_is_the_leaders_as_far_as_the_own_log_goes() -> None:
    follower = new_follower()
    assert follower.on_leader_offsets(9) == [AdvanceHighWatermark(5)]
    assert follower.on_leader_offsets(3) == []
    follower.on_replicated([(header_at(5, 2), None)], NOW_MS)
    assert follower.on_leader_offsets(9) == [AdvanceHighWatermark(7)]


def test_in_fsync_mode_what_was_replicated_is_flushed() -> None:
    follower = new_follower(AckDurability.FSYNC)
    follower.on_replicated([(header_at(5), None)], NOW_MS)
    assert follower.on_leader_offsets(2) == [NeedFlush()]
    follower.on_flushed(6)
    assert (follower.durable_end_offset, follower.is_flush_due) == (6, False)


def test_what_producers_did_is_learned_from_replicated_batches() -> None:
    follower = new_follower()
    header = header_at(5, 2, producer_id=9, producer_epoch=0, base_sequence=0)
    follower.on_replicated([(header, None)], NOW_MS)
    producer = follower.producers.find(9)
    assert producer is not None
    assert (producer.last_sequence, producer.batches[-1].base_offset) == (1, 5)


def test_it_cuts_where_either_log_leaves_the_epoch() -> None:
    follower = new_follower()
    assert follower.truncation_offset(4, 3) == 3
    assert follower.truncation_offset(3, 4) == 3
    assert follower.truncation_offset(9, 9) == 5


def test_a_cut_takes_the_offsets_back_and_the_high_watermark_only_where_it_must() -> None:
    follower = new_follower(committed=3)
    follower.on_truncated(0, 4, ProducerStates())
    assert (follower.log_end_offset, follower.durable_end_offset, follower.high_watermark) == (4, 4, 3)
    follower.on_truncated(0, 1, ProducerStates())
    assert follower.high_watermark == 1


def test_a_log_that_begins_anew_begins_where_the_leaders_does() -> None:
    follower = new_follower()
    follower.on_truncated(100, 100, ProducerStates())
    assert (follower.log_start_offset, follower.log_end_offset) == (100, 100)
    assert (follower.durable_end_offset, follower.high_watermark) == (100, 100)
