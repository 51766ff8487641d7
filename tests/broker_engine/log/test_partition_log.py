"""What a log promises its broker: offsets, reads, rolling, retention, look-ups. On memory and on disk."""

from __future__ import annotations

import pytest

from broker_engine.errors import BrokerError, ErrorCode
from broker_engine.log.config import LogConfig
from broker_engine.log.files import Files
from broker_engine.log.partition_log import PartitionLog
from broker_engine.log.segment import Segment
from broker_engine.records.batch import Codec, compute_crc, iter_batches, pack_header, parse_header, verify_crc
from broker_engine.records.builder import NewRecord, build_batch
from tests.broker_engine.log.harness import ALL_BYTES, DIRECTORY, START_MS, TOPIC_ID, LogHarness, ManualClock, numbered

SMALL_SEGMENTS = LogConfig(segment_bytes=400, index_interval_bytes=100)


def test_batches_get_the_next_offsets_and_the_leader_epoch(harness: LogHarness) -> None:
    assert harness.append(b"a", b"b", b"c")[:2] == (0, 2)
    assert harness.append(b"d", epoch=4)[:2] == (3, 3)
    headers = [parse_header(batch) for batch in iter_batches(harness.fetch(0))]
    assert [(header.base_offset, header.partition_leader_epoch) for header in headers] == [(0, 0), (3, 4)]
    assert all(verify_crc(batch) for batch in iter_batches(harness.fetch(0)))
    assert harness.values() == [b"a", b"b", b"c", b"d"]


def test_bytes_after_the_batch_are_not_written(harness: LogHarness) -> None:
    batch = build_batch([NewRecord(START_MS, None, b"v")])
    harness.append_batch(batch + b"surplus")
    assert harness.log.size_bytes == len(batch)


def test_log_append_time_is_stamped_with_a_new_crc(harness: LogHarness) -> None:
    batch = build_batch([NewRecord(5, None, b"v")], codec=Codec.LZ4)
    result = harness.append_batch(batch, log_append_time_ms=START_MS + 9)
    assert result.log_append_time_ms == START_MS + 9
    stored = harness.fetch(0)
    assert verify_crc(stored)
    assert parse_header(stored).base_timestamp == 5
    assert [record.timestamp for record in harness.records()] == [START_MS + 9]


def test_a_log_is_found_again_as_it_was(harness: LogHarness) -> None:
    for value in numbered(20):
        harness.append(value)
    before = harness.records()
    harness.log.close()
    harness.open()
    assert harness.records() == before
    assert harness.append(b"next").base_offset == 20


def test_reads_outside_of_the_log_are_refused_and_at_its_end_are_empty(harness: LogHarness) -> None:
    harness.append(b"a")
    for offset in (-1, 2):
        with pytest.raises(BrokerError) as raised:
            harness.fetch(offset)
        assert raised.value.code == ErrorCode.OFFSET_OUT_OF_RANGE
    assert harness.fetch(1) == b""


def test_a_read_may_cut_a_later_batch_but_never_the_first(harness: LogHarness) -> None:
    for value in numbered(3):
        harness.append(value)
    batch_bytes = harness.log.size_bytes // 3
    assert len(harness.fetch(1, max_bytes=1)) == batch_bytes
    assert len(harness.fetch(1, max_bytes=batch_bytes + 7)) == batch_bytes + 7
    read = harness.log.read(0, max_bytes=batch_bytes - 1, end_offset=3, at_least_one=False)
    assert (read.ranges, read.size_bytes) == ([], 0)


def test_nothing_at_or_above_the_end_offset_is_read(harness: LogHarness) -> None:
    for _ in range(5):
        harness.append(b"x", b"y")
    for end_offset in (2, 3, 8, 9, 10):
        offsets = [parse_header(batch).next_offset for batch in iter_batches(harness.fetch(0, end_offset=end_offset))]
        assert offsets == list(range(2, end_offset + 1, 2))
    assert harness.fetch(8, end_offset=8) == b""
    assert harness.fetch(9, end_offset=4) == b"", "a reader ahead of the high watermark waits"


def test_a_read_begins_with_the_batch_that_holds_the_offset(files: Files) -> None:
    harness = LogHarness(files, LogConfig(index_interval_bytes=200, segment_bytes=3000))
    for number in range(60):
        harness.append(*[b"%d" % number] * 3)
    assert harness.log.segment_count > 1
    for offset in range(180):
        read = harness.log.read(offset, max_bytes=1, end_offset=180, at_least_one=True)
        assert read.first_offset == offset - offset % 3
        read.release()


def test_segments_roll_by_size(files: Files) -> None:
    harness = LogHarness(files, SMALL_SEGMENTS)
    for value in numbered(30):
        harness.append(value)
    assert harness.log.segment_count > 5
    assert harness.values() == numbered(30)
    names = [name for name in files.list_dir(DIRECTORY) if name.endswith(".log")]
    assert len(names) == harness.log.segment_count
    assert all(len(name) == 24 for name in names)


def test_old_segments_go_and_the_log_starts_later(files: Files) -> None:
    harness = LogHarness(files, LogConfig(segment_bytes=400, retention_ms=1000))
    for value in numbered(10):
        harness.append(value)
    harness.clock.time_ms += 1001
    harness.append(b"young")
    deleted = harness.log.apply_retention(harness.clock.now_ms())
    assert deleted
    for segment in deleted:
        segment.remove()
    assert harness.log.log_start_offset == harness.records()[0].offset > 0
    assert harness.values()[-1] == b"young"
    assert not any(name.endswith(".deleted") for name in files.list_dir(DIRECTORY))
    start = harness.log.log_start_offset
    harness.log.close()
    assert harness.open().log_start_offset == start


def test_an_active_segment_that_is_all_too_old_goes_too(files: Files) -> None:
    harness = LogHarness(files, LogConfig(retention_ms=1000))
    harness.append(b"a", b"b")
    assert len(harness.log.apply_retention(START_MS + 1001)) == 1
    assert (harness.log.log_start_offset, harness.log.log_end_offset, harness.log.size_bytes) == (2, 2, 0)
    assert harness.append(b"c").base_offset == 2


def test_a_timestamp_in_the_future_does_not_keep_a_segment_longer_than_its_append_does(files: Files) -> None:
    harness = LogHarness(files, LogConfig(retention_ms=1000))
    harness.append(b"from the future", timestamp_ms=START_MS + 3_000_000)
    assert harness.log.apply_retention(START_MS + 1001)


def test_size_retention_keeps_at_least_the_bound(files: Files) -> None:
    harness = LogHarness(files, LogConfig(segment_bytes=400, retention_bytes=1000))
    for value in numbered(40):
        harness.append(value)
    harness.log.apply_retention(START_MS)
    assert 1000 <= harness.log.size_bytes < 1000 + 400


def test_retention_stops_at_the_high_watermark_and_at_a_compacted_topic(files: Files) -> None:
    harness = LogHarness(files, LogConfig(segment_bytes=400, retention_ms=1))
    for value in numbered(20):
        harness.append(value)
    assert harness.log.apply_retention(START_MS + 100, high_watermark=0) == []
    harness.log.config = LogConfig(segment_bytes=400, retention_ms=1, is_deleting=False)
    assert harness.log.apply_retention(START_MS + 100) == []


def test_minus_one_keeps_forever(files: Files) -> None:
    harness = LogHarness(files, LogConfig(segment_bytes=400, retention_ms=-1, retention_bytes=-1))
    for value in numbered(20):
        harness.append(value)
    assert harness.log.apply_retention(START_MS + (1 << 50)) == []


def test_records_are_deleted_up_to_an_offset_inside_a_segment(files: Files) -> None:
    harness = LogHarness(files, SMALL_SEGMENTS)
    for value in numbered(20):
        harness.append(value)
    harness.log.delete_records_before(13)
    assert harness.log.log_start_offset == 13
    assert harness.values() == numbered(20)[13:]
    with pytest.raises(BrokerError):
        harness.fetch(12)
    harness.log.close()
    harness.open(log_start_offset=13)
    assert harness.values() == numbered(20)[13:]


def test_a_reader_keeps_what_it_has_pinned_through_a_deletion(files: Files) -> None:
    harness = LogHarness(files, LogConfig(retention_ms=1))
    harness.append(b"going")
    read = harness.log.read(0, max_bytes=ALL_BYTES, end_offset=1, at_least_one=True)
    for segment in harness.log.apply_retention(START_MS + 10):
        segment.remove()
    harness.log.delete()
    assert verify_crc(read.ranges[0].read())
    read.release()
    assert not files.exists(DIRECTORY)


def test_a_directory_of_another_topic_is_not_opened(harness: LogHarness, files: Files) -> None:
    harness.log.close()
    other = TOPIC_ID.__class__(int=7)
    with pytest.raises(BrokerError) as raised:
        PartitionLog.open(files, DIRECTORY, LogConfig(), ManualClock(), topic_id=other)
    assert raised.value.code == ErrorCode.INCONSISTENT_TOPIC_ID


def test_a_deposed_leaders_append_is_refused(harness: LogHarness) -> None:
    harness.append(b"a", epoch=3)
    with pytest.raises(BrokerError) as raised:
        harness.append(b"b", epoch=2)
    assert raised.value.code == ErrorCode.FENCED_LEADER_EPOCH
    assert harness.values() == [b"a"]


def test_epochs_end_where_the_next_begins(harness: LogHarness) -> None:
    harness.append(b"a", b"b", epoch=1)
    harness.append(b"c", epoch=4)
    expected = {0: (0, 0), 1: (1, 2), 2: (1, 2), 3: (1, 2), 4: (4, 3), 5: (-1, -1), -1: (-1, -1)}
    assert {epoch: harness.log.end_offset_for_epoch(epoch) for epoch in expected} == expected
    harness.log.close()
    harness.open()
    assert {epoch: harness.log.end_offset_for_epoch(epoch) for epoch in expected} == expected


def test_truncation_drops_batches_and_their_epochs(files: Files) -> None:
    harness = LogHarness(files, SMALL_SEGMENTS)
    for number, value in enumerate(numbered(20)):
        harness.append(value, epoch=number // 8)
    harness.log.truncate_to(9)
    assert harness.values() == numbered(20)[:9]
    assert harness.log.latest_epoch == 1
    harness.append(b"other", epoch=5)
    harness.log.close()
    harness.open()
    assert harness.values() == [*numbered(20)[:9], b"other"]
    assert harness.log.end_offset_for_epoch(1) == (1, 9)


def test_a_reader_at_the_tail_goes_on_without_a_search(harness: LogHarness, monkeypatch: pytest.MonkeyPatch) -> None:
    for value in numbered(3):
        harness.append(value)
    harness.fetch(0)
    for value in numbered(5):
        harness.append(value)
    monkeypatch.setattr(Segment, "_indexed_position", None)
    assert harness.values(start=3) == numbered(5)


def test_a_cut_moves_the_borders_that_readers_would_go_on_from(harness: LogHarness) -> None:
    for value in numbered(4):
        harness.append(value)
        harness.fetch(0)
    harness.log.truncate_to(1)
    for value in (b"of another length than before", b"x", b"yy"):
        harness.append(value, epoch=1)
    assert [harness.values(start)[0] for start in range(4)] == [
        numbered(1)[0], b"of another length than before", b"x", b"yy"
    ]  # fmt: skip


class TestByTime:
    def test_the_first_record_at_or_after_a_time_is_found(self, files: Files) -> None:
        harness = LogHarness(files, LogConfig(segment_bytes=600, index_interval_bytes=100))
        for number in range(40):
            harness.append(b"a", timestamp_ms=START_MS + 10 * number, codec=number % 5)
        for number in range(40):
            for timestamp_ms in (START_MS + 10 * number, START_MS + 10 * number - 9):
                found = harness.log.find_by_timestamp(timestamp_ms, 40)
                assert found is not None
                assert found[:2] == (START_MS + 10 * number, number)
        assert harness.log.find_by_timestamp(START_MS + 391, 40) is None
        assert harness.log.find_by_timestamp(START_MS + 200, 20) is None, "nothing above the high watermark shows"

    def test_times_out_of_order_find_the_lowest_offset(self, harness: LogHarness) -> None:
        for delta in (5, 1, 9, 3):
            harness.append(b"a", timestamp_ms=START_MS + delta)
        found = harness.log.find_by_timestamp(START_MS + 6, 4)
        assert found == (START_MS + 9, 2, 0)

    def test_the_highest_timestamp_is_found_below_the_end(self, files: Files) -> None:
        harness = LogHarness(files, LogConfig(segment_bytes=300))
        for delta in (5, 1, 9, 3, 9, 7):
            harness.append(b"a", timestamp_ms=START_MS + delta)
        assert harness.log.max_timestamp_offset() == (START_MS + 9, 2, 0)
        assert harness.log.max_timestamp_offset(2) == (START_MS + 5, 0, 0)
        assert harness.log.max_timestamp_offset(0) is None

    def test_a_stored_batch_that_does_not_decode_answers_as_a_whole(self, harness: LogHarness) -> None:
        header = parse_header(build_batch([NewRecord(START_MS, None, b"v")] * 2, codec=Codec.ZSTD))
        junk = b"this is no zstd frame"
        header = header._replace(batch_length=49 + len(junk))
        harness.append_batch(pack_header(header._replace(crc=compute_crc(header, junk))) + junk)
        assert harness.log.find_by_timestamp(START_MS, 2) == (START_MS, 0, 0)
        assert harness.log.max_timestamp_offset() == (START_MS, 0, 0)
