"""Crashes, full disks and failing syncs: invariants 1-9 of the reliability text, as far as one log goes."""

from __future__ import annotations

from pathlib import Path

import pytest

from broker_engine.errors import BrokerError, ErrorCode
from broker_engine.log.checkpoints import EPOCHS_FILE
from broker_engine.log.config import LogConfig
from broker_engine.log.files import DiskFiles, Files, MemoryFiles
from tests.broker_engine.log.harness import ALL_BYTES, DIRECTORY, LogHarness, numbered

SMALL_SEGMENTS = LogConfig(segment_bytes=400, index_interval_bytes=100)
FIRST_LOG = f"{DIRECTORY}/{0:020d}.log"


def refused_with_storage_error(harness: LogHarness) -> None:
    with pytest.raises(BrokerError) as raised:
        harness.append(b"refused")
    assert raised.value.code == ErrorCode.KAFKA_STORAGE_ERROR


def test_what_was_flushed_survives_a_power_failure_and_the_rest_is_a_prefix() -> None:
    files = MemoryFiles()
    harness = LogHarness(files, SMALL_SEGMENTS)
    for value in numbered(10):
        harness.append(value)
    assert harness.flush() == 10
    for value in numbered(15)[10:]:
        harness.append(value)
    files.crash()
    harness.open()
    assert harness.values() == numbered(15)[: harness.log.log_end_offset]
    assert harness.log.log_end_offset >= 10


def test_what_a_cut_leaves_above_the_last_flush_is_flushed_as_well() -> None:
    """Nothing else would make it durable before the next append, for which everybody may be waiting."""
    harness = LogHarness(MemoryFiles())
    harness.append(b"a")
    harness.flush()
    for value in (b"b", b"c"):
        harness.append(value)
    harness.log.truncate_to(2)
    assert (harness.log.log_end_offset, harness.log.durable_end_offset) == (2, 1)
    assert harness.flush() == 2


def test_a_flush_covers_what_was_appended_before_it_was_made(harness: LogHarness) -> None:
    harness.append(b"a")
    job = harness.log.flush_job()
    assert job is not None
    harness.append(b"b")
    assert harness.log.flush_job() is None, "one flush in flight"
    job.run()
    assert harness.log.on_flushed(job) == 1
    assert harness.flush() == 2
    assert harness.log.flush_job() is None


def test_a_torn_tail_is_cut_at_every_byte(tmp_path: Path) -> None:
    harness = LogHarness(DiskFiles(tmp_path))
    for value in numbered(3):
        harness.append(value)
    harness.log.close()
    path = tmp_path / FIRST_LOG
    whole = path.read_bytes()
    batch_bytes = len(whole) // 3
    for size_bytes in range(len(whole) + 1):
        path.write_bytes(whole[:size_bytes])
        log = harness.open()
        assert (log.log_end_offset, log.size_bytes) == (
            size_bytes // batch_bytes,
            size_bytes // batch_bytes * batch_bytes,
        )
        log.close()


def test_a_flipped_bit_ends_the_log_where_it_is(tmp_path: Path) -> None:
    harness = LogHarness(DiskFiles(tmp_path))
    for value in numbered(3):
        harness.append(value)
    harness.log.close()
    path = tmp_path / FIRST_LOG
    damaged = bytearray(path.read_bytes())
    damaged[len(damaged) // 3 + 70] ^= 1
    path.write_bytes(damaged)
    assert harness.open().log_end_offset == 1
    assert harness.append(b"again").base_offset == 1


def test_zeros_after_the_last_batch_are_cut(tmp_path: Path) -> None:
    harness = LogHarness(DiskFiles(tmp_path))
    harness.append(b"a")
    harness.log.close()
    path = tmp_path / FIRST_LOG
    path.write_bytes(path.read_bytes() + bytes(5000))
    assert harness.open().log_end_offset == 1


@pytest.mark.parametrize("recovery_point", [None, 30, 17])
def test_a_clean_restart_needs_no_more_than_the_recovery_point(files: Files, recovery_point: int | None) -> None:
    harness = LogHarness(files, SMALL_SEGMENTS)
    harness.config = LogConfig(segment_bytes=1200, index_interval_bytes=100)
    harness.log.config = harness.config
    for number, value in enumerate(numbered(30)):
        harness.append(value, timestamp_ms=harness.clock.now_ms() + number)
    before = (harness.records(), harness.log.max_timestamp_offset(), harness.log.find_by_timestamp(0, 30))
    harness.log.close()
    harness.open(recovery_point=recovery_point)
    assert (harness.records(), harness.log.max_timestamp_offset(), harness.log.find_by_timestamp(0, 30)) == before
    assert harness.append(b"next").base_offset == 30


def test_indexes_and_epochs_are_caches(files: Files) -> None:
    harness = LogHarness(files, SMALL_SEGMENTS)
    for number, value in enumerate(numbered(40)):
        harness.append(value, epoch=number // 15, timestamp_ms=harness.clock.now_ms() + number * 7 % 40)
    answers = _every_answer(harness)
    harness.log.close()
    for name in files.list_dir(DIRECTORY):
        if not name.endswith((".log", "partition.metadata")):
            files.unlink(f"{DIRECTORY}/{name}")
    harness.open()
    assert _every_answer(harness) == answers


@pytest.mark.parametrize("garbage", [b"", bytes(80), b"garbage that is longer than an entry"])
def test_damaged_caches_are_made_again(files: Files, garbage: bytes) -> None:
    harness = LogHarness(files, SMALL_SEGMENTS)
    for number, value in enumerate(numbered(40)):
        harness.append(value, epoch=number // 15, timestamp_ms=harness.clock.now_ms() + number * 7 % 40)
    answers = _every_answer(harness)
    harness.log.close()
    for name in files.list_dir(DIRECTORY):
        if name.endswith((".index", ".timeindex", "checkpoint")):
            files.write_atomic(f"{DIRECTORY}/{name}", garbage, is_durable=False)
    harness.open()
    assert _every_answer(harness) == answers


def _every_answer(harness: LogHarness) -> list[object]:
    log = harness.log
    offsets = range(log.log_start_offset, log.log_end_offset + 1)
    start_ms = harness.clock.now_ms()
    return [
        harness.records(),
        [harness.fetch(offset) for offset in offsets],
        [log.find_by_timestamp(start_ms + delta, log.log_end_offset) for delta in range(45)],
        [log.end_offset_for_epoch(epoch) for epoch in range(-1, 6)],
        log.max_timestamp_offset(),
        log.epochs.entries,
    ]


def test_a_full_disk_refuses_the_append_and_nothing_of_it_stays() -> None:
    files = MemoryFiles()
    harness = LogHarness(files)
    harness.append(b"before")
    size_bytes = harness.log.size_bytes
    files.free_bytes = 30  # room for half of the header
    refused_with_storage_error(harness)
    assert harness.log.size_bytes == size_bytes
    files.no_space = False
    assert harness.append(b"after").base_offset == 1
    assert harness.values() == [b"before", b"after"]


def test_a_disk_that_is_full_at_the_roll_loses_nothing() -> None:
    files = MemoryFiles()
    harness = LogHarness(files, LogConfig(segment_bytes=100))
    harness.append(b"before")
    files.no_space = True
    refused_with_storage_error(harness)
    files.no_space = False
    harness.append(b"after")
    assert harness.values() == [b"before", b"after"]
    assert harness.log.find_by_timestamp(0, 2) is not None


def test_a_write_that_cannot_be_taken_back_takes_the_log_offline() -> None:
    files = MemoryFiles()
    harness = LogHarness(files)
    harness.append(b"before")
    files.free_bytes, files.fail_next_truncate = 30, True
    refused_with_storage_error(harness)
    files.no_space = False
    assert harness.log.is_offline
    refused_with_storage_error(harness)
    harness.open()
    assert harness.values() == [b"before"]


def test_after_a_failed_sync_the_log_is_offline_and_never_synced_again() -> None:
    files = MemoryFiles()
    harness = LogHarness(files)
    harness.append(b"flushed")
    harness.flush()
    harness.append(b"lost")
    files.fail_next_sync = True
    with pytest.raises(BrokerError) as raised:
        harness.flush()
    assert raised.value.code == ErrorCode.KAFKA_STORAGE_ERROR
    sync_count = files.sync_count
    refused_with_storage_error(harness)
    with pytest.raises(BrokerError):
        harness.fetch(0)
    assert harness.log.flush_job() is None
    harness.log.close()
    assert (files.sync_count, harness.log.durable_end_offset) == (sync_count, 1)
    files.crash()
    harness.open()
    assert harness.values() == [b"flushed"]


def test_a_deletion_that_a_crash_cut_short_is_finished_at_the_next_start(files: Files) -> None:
    harness = LogHarness(files, SMALL_SEGMENTS)
    for value in numbered(20):
        harness.append(value)
    deleted = harness.log.delete_records_before(10)
    assert deleted
    harness.log.close()
    harness.open()
    assert not any(name.endswith(".deleted") for name in files.list_dir(DIRECTORY))
    assert harness.values()[-1] == numbered(20)[-1]


def test_a_flush_in_flight_survives_the_deletion_of_its_segment(harness: LogHarness) -> None:
    harness.append(b"a")
    job = harness.log.flush_job()
    assert job is not None
    harness.log.delete()
    job.run()
    assert harness.log.on_flushed(job) == 0, "nothing more became durable, and no disk failed"
    assert not harness.log.is_offline


def test_the_open_file_bound_holds_and_pinned_files_stay(tmp_path: Path) -> None:
    files = DiskFiles(tmp_path, open_files_max=3)
    handles = [files.open(f"f{number}", create=True) for number in range(8)]
    assert files.open_count == 3
    for number, handle in enumerate(handles):
        handle.append([b"%d" % number])
    for handle in handles[:5]:
        handle.pin()
    assert files.open_count == 5
    assert [handle.pread(9, 0) for handle in handles] == [b"%d" % number for number in range(8)]
    for handle in handles[:5]:
        handle.unpin()
    handles[0].pin()
    handles[0].close()
    (tmp_path / "f0").unlink()
    assert handles[0].pread(9, 0) == b"0"
    handles[0].unpin()
    with pytest.raises(OSError, match="closed"):
        handles[0].pread(1, 0)
    assert files.open_count <= 3


def test_a_range_in_the_page_cache_is_known_to_be(harness: LogHarness) -> None:
    harness.append(b"a" * 20_000)
    read = harness.log.read(0, max_bytes=ALL_BYTES, end_offset=1, at_least_one=True)
    assert read.ranges[0].is_cached()
    read.release()


class PickyFiles(MemoryFiles):
    """Full for small files, while a log that has its blocks can still be synced."""

    def write_atomic(self, path: str, data: bytes, *, is_durable: bool) -> None:
        self.no_space = self.is_full
        try:
            super().write_atomic(path, data, is_durable=is_durable)
        finally:
            self.no_space = False

    is_full = False


def test_records_of_a_new_epoch_are_durable_though_there_is_no_room_for_the_epochs() -> None:
    files = PickyFiles()
    harness = LogHarness(files)
    harness.append(b"before", epoch=1)
    harness.flush()
    files.is_full = True
    harness.append(b"after an election", epoch=2)
    assert harness.flush() == 2, "acknowledged: a full disk is no failing one"
    assert harness.log.flush_job() is None, "nobody tries again without rest"
    point = harness.log.recovery_point
    assert point == 1, "the next start has to take the epoch from the batch"
    files.crash()
    files.is_full = False
    harness.open(recovery_point=point)
    assert harness.values() == [b"before", b"after an election"]
    assert harness.log.end_offset_for_epoch(1) == (1, 1)
    assert harness.log.latest_epoch == 2


def test_epochs_that_a_start_found_in_the_batches_outlive_the_next_power_failure() -> None:
    files = MemoryFiles()
    harness = LogHarness(files)
    harness.append(b"before", epoch=1)
    harness.flush()
    known = files.read_small(f"{DIRECTORY}/{EPOCHS_FILE}")
    harness.append(b"after an election", epoch=2)
    harness.flush()
    files.write_atomic(f"{DIRECTORY}/{EPOCHS_FILE}", known, is_durable=True)  # as if the checkpoint had been lost
    harness.open(recovery_point=1)
    assert harness.log.recovery_point == 1, "what the start wrote is not durable yet"
    point = harness.log.recovery_point
    files.crash()
    harness.open(recovery_point=point)
    assert harness.log.latest_epoch == 2
    harness.flush()
    assert harness.log.recovery_point == 2


def test_the_epochs_are_written_with_the_first_flush_for_which_there_is_room() -> None:
    files = PickyFiles()
    harness = LogHarness(files)
    files.is_full = True
    harness.append(b"a", epoch=2)
    harness.flush()
    files.is_full = False
    harness.append(b"b", epoch=2)
    harness.flush()
    assert harness.log.recovery_point == 2
    files.crash()
    assert b"2 0" in files.read_small(f"{DIRECTORY}/{EPOCHS_FILE}")


def test_a_log_is_cut_on_a_full_disk() -> None:
    files = PickyFiles()
    harness = LogHarness(files)
    harness.append(b"kept", epoch=1)
    harness.append(b"cut", epoch=2)
    harness.flush()
    files.is_full = True
    harness.log.truncate_to(1)
    assert harness.append(b"instead", epoch=3).base_offset == 1
    assert harness.flush() == 2
    files.crash()
    files.is_full = False
    harness.open(recovery_point=harness.log.recovery_point)
    assert (harness.values(), harness.log.latest_epoch) == ([b"kept", b"instead"], 3)
    assert harness.log.end_offset_for_epoch(2) == (1, 1)
