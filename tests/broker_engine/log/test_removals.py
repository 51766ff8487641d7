"""Files of removed segments wait for their delay, and a restart, a deleted topic or a hurry does not."""

from __future__ import annotations

import pytest

from broker_engine.log.config import LogConfig
from broker_engine.log.files import Files
from broker_engine.log.memory_files import MemoryFiles
from broker_engine.log.removals import Removals
from broker_engine.log.retention import DeletedSegment
from tests.broker_engine.log.compacting import run_compaction
from tests.broker_engine.log.harness import DIRECTORY, LogHarness, ManualClock, numbered

DELAYED = LogConfig(segment_bytes=400, retention_ms=1000, file_delete_delay_ms=60_000)


@pytest.fixture
def harness(files: Files) -> LogHarness:
    harness = LogHarness(files, DELAYED)
    harness.log.removals = Removals(harness.clock)
    for value in numbered(20):
        harness.append(value)
    return harness


def deleted_names(harness: LogHarness) -> list[str]:
    return [name for name in harness.files.list_dir(DIRECTORY) if name.endswith(".deleted")]


def waiting(harness: LogHarness) -> Removals:
    assert harness.log.removals is not None
    return harness.log.removals


def test_what_retention_takes_out_waits_for_its_delay(harness: LogHarness) -> None:
    harness.clock.time_ms += 5000
    assert harness.log.apply_retention(harness.clock.now_ms()) == []
    assert (harness.log.log_start_offset, harness.values()) == (20, [])
    count = len([name for name in deleted_names(harness) if name.endswith(".log.deleted")])
    assert len(waiting(harness)) == count > 3
    harness.clock.time_ms += 59_999
    assert waiting(harness).take() == []
    harness.clock.time_ms += 1
    due = waiting(harness).take()
    assert [segment.base_offset for segment in due] == sorted(segment.base_offset for segment in due)
    for segment in due:
        segment.remove()
    assert (deleted_names(harness), len(waiting(harness))) == ([], 0)


def test_deleted_records_wait_too(harness: LogHarness) -> None:
    assert harness.log.delete_records_before(13) == []
    assert deleted_names(harness)
    assert harness.values() == list(numbered(20)[13:])


def test_a_restart_in_between_removes_them_and_who_comes_later_finds_nothing(harness: LogHarness) -> None:
    harness.log.delete_records_before(13)
    waited = waiting(harness)
    harness.flush()
    harness.log.close()
    harness.open(recovery_point=20, log_start_offset=13)
    assert deleted_names(harness) == []
    assert harness.values() == list(numbered(20)[13:])
    for segment in waited.take(at_once=True):
        segment.remove()
    assert harness.values() == list(numbered(20)[13:])


def test_a_deleted_partition_takes_what_waits_with_it(harness: LogHarness) -> None:
    harness.log.delete_records_before(13)
    harness.log.delete(renamed_to="gone")
    for segment in waiting(harness).take(at_once=True):
        segment.remove()
    assert not harness.files.exists(DIRECTORY)


def test_a_change_of_the_delay_counts_from_then_on(harness: LogHarness) -> None:
    harness.log.config = LogConfig(segment_bytes=400, file_delete_delay_ms=0)
    at_once = harness.log.delete_records_before(13)
    assert at_once
    assert len(waiting(harness)) == 0


def test_what_compaction_replaces_waits_and_is_not_there_after_a_restart(files: Files) -> None:
    config = LogConfig(
        is_compacting=True, is_deleting=False, segment_bytes=400, min_cleanable_dirty_ratio=0, file_delete_delay_ms=10
    )
    harness = LogHarness(files, config)
    harness.log.removals = Removals(harness.clock)
    for _ in range(2):  # the second one's files get the names of those that wait
        for value in numbered(12):
            harness.append(value)
        harness.log.roll()
        assert run_compaction(harness.log, now_ms=harness.clock.now_ms())
    newest = harness.values()
    assert newest == [numbered(12)[-1]]
    assert deleted_names(harness)
    harness.log.close()
    harness.open()
    assert (deleted_names(harness), harness.values()) == ([], newest)


def test_more_than_a_bound_do_not_wait() -> None:
    files, clock = MemoryFiles(), ManualClock()
    removals = Removals(clock, count_max=3)
    segments = [DeletedSegment(number, 1, files, []) for number in range(5)]
    removals.add(segments[:4], 60_000)
    removals.add(segments[4:], 10)
    assert [segment.base_offset for segment in removals.take()] == [4, 0]
    assert removals.take() == []
    assert [segment.base_offset for segment in removals.take(at_once=True)] == [1, 2, 3]
