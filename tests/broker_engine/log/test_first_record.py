"""The first record that somebody has not read: what a group's lag in seconds is measured by."""

from __future__ import annotations

from broker_engine.log.config import LogConfig
from broker_engine.log.files import Files
from broker_engine.records.builder import NewRecord, build_batch
from tests.broker_engine.log.harness import START_MS, LogHarness


def test_the_record_at_an_offset_is_found_in_every_segment_and_codec(files: Files) -> None:
    harness = LogHarness(files, LogConfig(segment_bytes=600, index_interval_bytes=100))
    for number in range(40):
        harness.append(b"a", timestamp_ms=START_MS + 10 * number, codec=number % 5)
    for number in range(40):
        found = harness.log.first_record_from(number, 40)
        assert found is not None
        assert found[:2] == (START_MS + 10 * number, number)


def test_nothing_is_unread_at_the_end_or_above_the_high_watermark(harness: LogHarness) -> None:
    harness.append(b"a")
    harness.append(b"b")
    assert harness.log.first_record_from(2, 2) is None
    assert harness.log.first_record_from(1, 1) is None


def test_the_middle_of_a_batch_answers_its_own_record(harness: LogHarness) -> None:
    harness.append_batch(build_batch([NewRecord(START_MS + n, None, b"v") for n in range(5)]))
    assert harness.log.first_record_from(3, 5) == (START_MS + 3, 3, 0)


def test_markers_of_transactions_are_no_records(harness: LogHarness) -> None:
    harness.append(b"a")
    marker = build_batch(
        [NewRecord(START_MS + 1, b"\0\0\0\1", b"\0\0\0\0\0\0")], is_control=True, is_transactional=True
    )
    harness.append_batch(marker)
    assert harness.log.first_record_from(1, 2) is None
    harness.append(b"b", timestamp_ms=START_MS + 7)
    assert harness.log.first_record_from(1, 3) == (START_MS + 7, 2, 0)
