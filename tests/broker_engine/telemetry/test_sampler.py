"""What the sampler writes: changes at once, everything once per interval, a last word for what is gone."""

from __future__ import annotations

from dataclasses import replace

from broker_engine.telemetry.sampler import Sampler
from broker_engine.telemetry.schema import (
    Key,
    Kind,
    PartitionRow,
    ReplicaRow,
    decode_key,
    decode_row,
    encode_key,
    encode_row,
)

ROW = PartitionRow(
    at_ms=1,
    topic_id="id",
    leader=1,
    leader_epoch=0,
    isr=[1],
    replicas=[ReplicaRow(1, 5)],
    log_start_offset=0,
    high_watermark=5,
    last_stable_offset=5,
    log_end_offset=5,
    size_bytes=100,
    last_append_ms=1,
)


def rows(sampler: Sampler, *partitions: int, row: PartitionRow = ROW) -> list[tuple[Key, int, PartitionRow]]:
    return [(key(partition), sampler.turn_of(key(partition)), row) for partition in partitions]


def key(partition: int) -> Key:
    return Key(broker=1, broker_epoch=3, kind=Kind.PARTITION, tenant="demo", name="orders", partition=partition)


def test_keys_and_rows_survive_the_trip() -> None:
    assert decode_key(encode_key(key(2))) == key(2)
    assert decode_row(Kind.PARTITION, encode_row(ROW)) == ROW


def test_an_unchanged_row_is_written_once_per_snapshot_interval() -> None:
    sampler = Sampler(ticks_per_snapshot=30)
    first = sampler.sample(rows(sampler, 0))
    rest = [sampler.sample(rows(sampler, 0, row=replace(ROW, at_ms=tick))) for tick in range(30)]
    assert len(first) == 1
    assert sum(map(len, rest)) == 1


def test_a_snapshot_is_spread_over_its_interval() -> None:
    sampler = Sampler(ticks_per_snapshot=10)
    all_rows = rows(sampler, *range(1000))
    sampler.sample(all_rows)
    sizes = [len(sampler.sample(all_rows)) for _ in range(10)]
    assert sum(sizes) == 1000
    assert max(sizes) < 200


def test_a_change_is_written_at_once() -> None:
    sampler = Sampler(ticks_per_snapshot=1_000_000)
    sampler.sample(rows(sampler, 0))
    changed = replace(ROW, high_watermark=6)
    records = sampler.sample(rows(sampler, 0, row=changed))
    assert [decode_row(Kind.PARTITION, value) for _, value in records] == [changed]


def test_a_partition_that_is_gone_gets_a_last_row() -> None:
    sampler = Sampler(ticks_per_snapshot=30)
    sampler.sample(rows(sampler, 0, 1))
    [(gone_key, gone_value)] = sampler.forget(key(0), now_ms=9)
    assert decode_key(gone_key) == key(0)
    row = decode_row(Kind.PARTITION, gone_value)
    assert isinstance(row, PartitionRow)
    assert row.is_deleted
    assert sampler.forget(key(0), now_ms=9) == []
