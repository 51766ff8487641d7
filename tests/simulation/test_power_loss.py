"""Crashes that once left a log with wrong answers, one by one: found by crash images, kept as stories."""

from __future__ import annotations

from random import Random

from broker_engine.log.checkpoints import EpochCache, EpochStart
from broker_engine.log.config import LogConfig
from broker_engine.simulator.sim_disk import SimDisk
from broker_engine.simulator.survival import KeepNames, KeepRandom, KeepSynced
from tests.broker_engine.log.harness import LogHarness, numbered

SMALL_SEGMENTS = LogConfig(segment_bytes=1200, index_interval_bytes=100)


def test_an_epoch_checkpoint_that_lost_its_last_digits_is_not_believed() -> None:
    whole = EpochCache([EpochStart(0, 0), EpochStart(1, 150)]).format()
    for size_bytes in range(len(whole)):
        assert EpochCache.parse(whole[:size_bytes]) is None


def test_indexes_are_on_disk_before_the_recovery_point_passes_their_segment() -> None:
    disk = SimDisk()
    harness = LogHarness(disk, SMALL_SEGMENTS)
    start_ms = harness.clock.now_ms()
    for number, value in enumerate(numbered(40)):
        harness.append(value, timestamp_ms=start_ms + number)
    durable = harness.flush()
    for seed in range(60):
        image = disk.image(KeepRandom(Random(seed)))
        harness.files = image
        log = harness.open(recovery_point=durable)
        found = [log.find_by_timestamp(start_ms + number, durable) for number in range(40)]
        assert [each.offset if each else None for each in found] == list(range(40)), f"seed {seed}"


def test_the_index_of_a_cleanly_closed_log_is_on_disk() -> None:
    disk = SimDisk()
    harness = LogHarness(disk, LogConfig(index_interval_bytes=100))
    start_ms = harness.clock.now_ms()
    for number, value in enumerate(numbered(40)):
        harness.append(value, timestamp_ms=start_ms + 1000 - number if number > 10 else start_ms)
    durable = harness.flush()
    harness.log.close()
    for survival in (KeepSynced(), *(KeepRandom(Random(seed)) for seed in range(60))):
        harness.files = disk.image(survival)
        latest = harness.open(recovery_point=durable).max_timestamp_offset()
        assert latest is not None
        assert latest.offset == 11


def test_records_that_come_back_because_their_deletion_was_lost_have_their_epoch() -> None:
    disk = SimDisk()
    harness = LogHarness(disk, SMALL_SEGMENTS)
    for number, value in enumerate(numbered(40)):
        harness.append(value, epoch=number // 30)
    base_offset = harness.log.segment_bases[1]
    for segment in harness.log.delete_records_before(base_offset + 3):
        segment.remove()
    harness.flush()
    harness.files = disk.image(KeepSynced())
    log = harness.open()
    assert log.log_start_offset == base_offset
    assert log.epoch_of(base_offset) == 0


def test_a_compacted_topic_too_ends_where_a_segment_lost_its_tail() -> None:
    disk = SimDisk()
    harness = LogHarness(disk, LogConfig(segment_bytes=1200, index_interval_bytes=100, is_compacting=True))
    for value in numbered(8):
        harness.append(value)
    durable = harness.flush()
    for value in numbered(40)[8:]:
        harness.append(value)
    assert harness.log.segment_count > 2
    for survival in (KeepNames(), *(KeepRandom(Random(seed)) for seed in range(60))):
        harness.files = disk.image(survival)
        log = harness.open(recovery_point=durable)
        assert log.log_end_offset >= durable
        assert harness.values() == list(numbered(40)[: log.log_end_offset])


def test_the_directory_of_a_process_that_died_too_soon_is_synced_by_the_next() -> None:
    disk = SimDisk()
    LogHarness(disk).append(b"written")
    disk.kill()
    survivor = LogHarness(disk)
    assert survivor.log.durable_end_offset == 1
    survivor.files = disk.image(KeepSynced())
    survivor.open()
    assert survivor.values() == [b"written"]


def test_the_first_flush_covers_directories_that_somebody_else_made() -> None:
    disk = SimDisk()
    LogHarness(disk).log.start_epoch(0)
    disk.kill()
    survivor = LogHarness(disk)
    survivor.append(b"promised")
    survivor.flush()
    survivor.files = disk.image(KeepSynced())
    survivor.open()
    assert survivor.values() == [b"promised"]


def test_a_segment_begun_by_a_process_that_died_is_synced_by_name() -> None:
    disk = SimDisk()
    harness = LogHarness(disk)
    harness.append(b"before")
    durable = harness.flush()
    harness.log.roll()
    disk.kill()
    harness.open(recovery_point=durable)
    harness.append(b"after")
    harness.flush()
    harness.files = disk.image(KeepSynced())
    harness.open(recovery_point=durable)
    assert harness.values() == [b"before", b"after"]


def test_indexes_written_after_the_last_flush_are_not_trusted_by_the_next_process() -> None:
    disk = SimDisk()
    harness = LogHarness(disk, SMALL_SEGMENTS)
    start_ms = harness.clock.now_ms()
    for number, value in enumerate(numbered(10)):
        harness.append(value, timestamp_ms=start_ms + number)
    durable = harness.flush()
    harness.log.roll()
    disk.kill()
    harness.open(recovery_point=durable)
    harness.append(b"more", timestamp_ms=start_ms + 10)
    durable = harness.flush()
    for seed in range(60):
        harness.files = disk.image(KeepRandom(Random(seed)))
        found = harness.open(recovery_point=durable).find_by_timestamp(start_ms + 9, durable)
        assert found is not None
        assert found.offset == 9, f"seed {seed}"


def test_an_epoch_checkpoint_from_before_a_truncation_is_not_believed() -> None:
    disk = SimDisk()
    harness = LogHarness(disk)
    for epoch, value in ((2, b"a"), (3, b"b"), (4, b"c")):
        harness.append(value, epoch=epoch)
    harness.flush()
    harness.log.truncate_to(1)
    harness.append(b"d", epoch=4)
    harness.log.flush_job()  # made, and the power fails before the checkpoint is written
    harness.append(b"e", epoch=4)
    for seed in range(60):
        harness.files = disk.image(KeepRandom(Random(seed)))
        log = harness.open(recovery_point=1)
        assert [log.epoch_of(offset) for offset in range(log.log_end_offset)] == [2, 4, 4][: log.log_end_offset]
