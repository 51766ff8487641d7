"""The four ways to see a part of a committed transaction (docs/read-committed.md): true here as in Kafka."""

from __future__ import annotations

from pathlib import Path

from broker_engine.log.config import LogConfig
from tests.broker_engine.log.compacting import run_compaction
from tests.broker_engine.server.one_replica import OneReplica

PAGE = Path(__file__).parents[3] / "docs" / "read-committed.md"


def test_compaction_takes_records_out_of_a_committed_transaction() -> None:
    replica = OneReplica(LogConfig(segment_bytes=300, is_compacting=True, is_deleting=False))
    replica.send(1, b"order 1", key=b"customer")
    replica.send(1, b"seat 7A", key=b"seat")
    replica.end(1, is_commit=True)
    assert replica.committed_values() == []  # nothing is durable yet
    replica.flush()
    assert replica.committed_values() == [b"order 1", b"seat 7A"]
    replica.send(1, b"order 2", key=b"customer")
    replica.end(1, is_commit=True)
    replica.send(2, b"something else", key=b"other", is_plain=True)
    replica.flush()
    _compact(replica)
    assert replica.committed_values() == [b"seat 7A", b"order 2", b"something else"], "a seat without its order"


def test_retention_takes_the_begin_of_a_transaction_that_lies_over_two_segments() -> None:
    replica = OneReplica(LogConfig(segment_bytes=100, retention_bytes=150))
    replica.send(1, b"order 1")
    replica.send(1, b"seat 7A")
    replica.send(1, b"seat 7B")
    assert replica.local.log.segment_count == 3
    replica.flush()
    _retain(replica)
    assert replica.local.log_start_offset == 0, "while it is open nothing of it goes"
    replica.end(1, is_commit=True)
    replica.flush()
    _retain(replica)
    assert replica.committed_values() == [b"seat 7B"], "seats without an order"


def test_a_seek_into_the_middle_reads_the_rest_of_the_transaction() -> None:
    replica = OneReplica()
    replica.send(1, b"order 1")
    middle = replica.send(1, b"seat 7A")
    replica.end(1, is_commit=True)
    replica.flush()
    assert replica.committed_values() == [b"order 1", b"seat 7A"]
    assert replica.committed_values(middle) == [b"seat 7A"]


def test_a_reader_of_one_partition_sees_one_partitions_part() -> None:
    orders, seats = OneReplica(), OneReplica()
    orders.send(1, b"order 1")
    seats.send(1, b"seat 7A")
    orders.end(1, is_commit=True)
    for partition in (orders, seats):
        partition.flush()
    assert orders.committed_values() == [b"order 1"]
    assert seats.committed_values() == [], "its marker comes a moment later"
    seats.end(1, is_commit=True)
    seats.flush()
    assert seats.committed_values() == [b"seat 7A"]


def test_an_aborted_transaction_is_never_seen_in_any_of_these_ways() -> None:
    replica = OneReplica(LogConfig(segment_bytes=150, retention_bytes=300, is_compacting=True))
    offsets = [replica.send(1, b"order %d" % number, key=b"%d" % number) for number in range(6)]
    replica.end(1, is_commit=False)
    replica.send(2, b"plain", key=b"p", is_plain=True)
    replica.flush()
    for offset in offsets:
        assert replica.committed_values(offset, bytes_max=1) == [b"plain"]
    _compact(replica)
    assert replica.committed_values() == [b"plain"]
    _retain(replica)
    assert replica.committed_values() == [b"plain"]


def test_the_page_names_every_test_of_its_cases() -> None:
    text = PAGE.read_text()
    named = [name for name in globals() if name.startswith("test_") and f"`{name}`" in text]
    assert len(named) == 4


def _compact(replica: OneReplica) -> None:
    replica.local.log.roll()  # the active segment is not compacted
    producers = replica.core.producers
    job = run_compaction(
        replica.local.log,
        now_ms=replica.clock.now_ms(),
        limit_offset=replica.local.last_stable_offset,
        last_batches=producers.last_batches(replica.local.last_stable_offset),
    )
    assert job is not None


def _retain(replica: OneReplica) -> None:
    for segment in replica.local.apply_retention(replica.clock.now_ms()):
        segment.remove()
