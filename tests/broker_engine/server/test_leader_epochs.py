"""Where an epoch ended, as readers ask it after a leader change (OffsetForLeaderEpoch), by Kafka's rules."""

from __future__ import annotations

from tests.broker_engine.server.one_replica import OneReplica


def test_a_reader_of_a_partition_that_was_always_empty_is_sent_nowhere() -> None:
    """It fetched in epoch 0, before the first record; -1 would tell librdkafka that records were cut off."""
    replica = OneReplica()
    assert replica.local.leader_epoch == 1
    assert replica.local.end_offset_for_epoch(0) == (0, 0)


def test_an_epoch_before_the_first_record_ended_where_that_is() -> None:
    replica = OneReplica()
    replica.send(7, b"first")
    assert replica.local.end_offset_for_epoch(0) == (0, 0)
    assert replica.local.end_offset_for_epoch(1) == (1, 1)


def test_an_epoch_that_nobody_heard_of_has_no_end() -> None:
    assert OneReplica().local.end_offset_for_epoch(2) == (-1, -1)
