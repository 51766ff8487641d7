"""Compaction keeps the last record of every key, and what Kafka keeps besides."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from broker_engine.log.config import LogConfig
from broker_engine.log.files import DiskFiles, Files, MemoryFiles
from broker_engine.partition.producers import ProducerStates
from broker_engine.records.batch import decode_records, parse_header
from broker_engine.records.builder import NewRecord, build_batch
from broker_engine.records.control import LastBatch, TxnMarker, marker_record
from broker_engine.records.header import DELETE_HORIZON_BIT, compute_crc, pack_header
from tests.broker_engine.log.compacting import run_compaction
from tests.broker_engine.log.harness import DIRECTORY, START_MS, LogHarness
from tests.broker_engine.log.kafka_tools import dump_log, need_kafka_tools
from tests.broker_engine.log.test_golden_segments import GOLDEN, open_log, stored_batches

CONFIG = LogConfig(
    is_compacting=True,
    is_deleting=False,
    segment_bytes=1 << 20,
    index_interval_bytes=100,
    min_cleanable_dirty_ratio=0,
    delete_retention_ms=10_000,
)


class CompactedTopic(LogHarness):
    """Records by key; each `seal` ends a segment."""

    def __init__(self, files: Files, config: LogConfig = CONFIG) -> None:
        super().__init__(files, config)
        self.last_batches: dict[int, LastBatch] = {}

    def put(self, *pairs: tuple[str, str | None], codec: int = 0, **producer: int) -> int:
        records = [
            NewRecord(self.clock.now_ms(), key.encode(), None if value is None else value.encode())
            for key, value in pairs
        ]
        return self.append_batch(build_batch(records, codec=codec, **producer)).base_offset

    def seal(self) -> None:
        self.log.roll()

    def compact(self, **options: int) -> bool:
        """True if something was due."""
        job = run_compaction(self.log, now_ms=self.clock.now_ms(), last_batches=self.last_batches, **options)
        return job is not None

    def pairs(self) -> list[tuple[int, str, str | None]]:
        return [
            (record.offset, (record.key or b"").decode(), None if record.value is None else record.value.decode())
            for record in self.records()
        ]

    def headers(self) -> list[tuple[int, int, int]]:
        """(base offset, last offset, records) of every batch."""
        return [(h.base_offset, h.last_offset, h.record_count) for h in self.log.iter_headers()]


@pytest.fixture
def topic(files: Files) -> CompactedTopic:
    return CompactedTopic(files)


@pytest.mark.parametrize("codec", range(5))
def test_the_last_value_of_each_key_stays_at_its_offset(topic: CompactedTopic, codec: int) -> None:
    topic.put(("a", "1"), ("b", "1"), codec=codec)
    topic.put(("a", "2"), ("c", "1"), codec=codec)
    topic.seal()
    topic.put(("b", "2"), codec=codec)
    topic.seal()
    assert topic.compact()
    assert topic.pairs() == [(2, "a", "2"), (3, "c", "1"), (4, "b", "2")]
    assert topic.log.log_start_offset == 0
    assert topic.append(b"x").base_offset == 5
    assert topic.log.segment_count == 2, "what fits into one segment becomes one"


def test_the_active_segment_is_left_alone_but_its_keys_do_not_count_yet(topic: CompactedTopic) -> None:
    topic.put(("a", "1"))
    topic.seal()
    topic.put(("a", "2"))
    topic.put(("a", "3"))
    topic.compact()
    assert topic.pairs() == [(0, "a", "1"), (1, "a", "2"), (2, "a", "3")]


def test_nothing_at_or_above_the_limit_is_touched(topic: CompactedTopic) -> None:
    for number in range(4):
        topic.put(("a", str(number)))
        topic.seal()
    topic.compact(limit_offset=2)
    assert [offset for offset, _, _ in topic.pairs()] == [1, 2, 3]


def test_young_segments_wait_for_the_least_lag_and_old_ones_do_not_wait_longer_than_the_greatest(
    files: Files,
) -> None:
    topic = CompactedTopic(files, replace(CONFIG, min_compaction_lag_ms=1000))
    topic.put(("a", "1"))
    topic.put(("a", "2"))
    topic.seal()
    assert not topic.compact()
    topic.clock.time_ms += 1001
    assert topic.compact()
    topic.log.config = replace(CONFIG, min_cleanable_dirty_ratio=1.0, max_compaction_lag_ms=5000)
    topic.put(("a", "3"))
    topic.seal()
    assert not topic.compact(), "the share of new records never exceeds 1.0"
    topic.clock.time_ms += 5001
    assert topic.compact()
    assert topic.pairs() == [(2, "a", "3")]


def test_a_log_is_compacted_again_only_when_enough_of_it_is_new(topic: CompactedTopic) -> None:
    topic.log.config = replace(CONFIG, min_cleanable_dirty_ratio=0.5)
    topic.put(*[(f"key-{number}", "x" * 50) for number in range(20)])
    topic.seal()
    assert topic.compact()
    assert not topic.compact()
    topic.put(("key-1", "y"))
    topic.seal()
    assert not topic.compact()
    topic.put(*[(f"key-{number}", "z" * 60) for number in range(20)])
    topic.seal()
    assert topic.compact()
    assert len(topic.pairs()) == 20


def test_tombstones_stay_for_their_retention_time_and_then_go(topic: CompactedTopic) -> None:
    topic.put(("a", "1"), ("b", "1"))
    topic.put(("a", None))
    topic.seal()
    topic.compact()
    assert topic.pairs() == [(1, "b", "1"), (2, "a", None)]
    horizon = [header.base_timestamp for header in topic.log.iter_headers() if header.has_delete_horizon]
    assert horizon == [START_MS + CONFIG.delete_retention_ms]
    assert {record.timestamp for record in topic.records()} == {START_MS}, "the records keep their time"
    topic.clock.time_ms += CONFIG.delete_retention_ms - 1
    topic.put(("c", "1"))
    topic.seal()
    topic.compact()
    assert (2, "a", None) in topic.pairs()
    topic.clock.time_ms += 1
    topic.put(("d", "1"))
    topic.seal()
    topic.compact()
    assert topic.pairs() == [(1, "b", "1"), (3, "c", "1"), (4, "d", "1")]


def produced(topic: CompactedTopic, count: int) -> ProducerStates:
    """So many batches of one producer, each with another value of the same key."""
    states = ProducerStates()
    for sequence in range(count):
        offset = topic.put(("a", str(sequence)), producer_id=7, producer_epoch=2, base_sequence=sequence)
        states.record(parse_header(topic.fetch(offset)), offset, 0)
    return states


def test_of_a_producer_whose_last_batches_may_be_lost_the_one_before_them_stays(topic: CompactedTopic) -> None:
    states = produced(topic, 4)
    topic.seal()
    topic.last_batches = states.last_batches(safe_offset=2)
    topic.compact()
    assert topic.headers() == [(1, 1, 0), (2, 2, 0), (3, 3, 1)]


def test_where_no_batch_that_is_remembered_is_safe_all_of_the_producers_stay(topic: CompactedTopic) -> None:
    states = produced(topic, 7)
    topic.seal()
    topic.last_batches = states.last_batches(safe_offset=1)
    topic.compact()
    assert [base_offset for base_offset, _, _ in topic.headers()] == list(range(7))


def test_a_producers_last_batch_stays_as_an_empty_header(topic: CompactedTopic) -> None:
    states = produced(topic, 3)
    topic.put(("a", "other"))
    topic.seal()
    topic.last_batches = states.last_batches(topic.log.log_end_offset)
    topic.compact()
    assert topic.headers() == [(2, 2, 0), (3, 3, 1)]
    rebuilt = ProducerStates()
    for header, marker in topic.log.iter_batches(0):
        rebuilt.record(header, header.base_offset, 0, marker)
    producer = rebuilt.find(7)
    assert producer is not None
    assert (producer.epoch, producer.last_sequence) == (2, 2)


def test_records_without_a_key_go(topic: CompactedTopic) -> None:
    topic.append_batch(build_batch([NewRecord(START_MS, None, b"x"), NewRecord(START_MS, b"a", b"1")]))
    topic.seal()
    topic.compact()
    assert topic.pairs() == [(1, "a", "1")]


def test_a_cut_in_memory_for_keys_leaves_the_rest_for_the_next_run(topic: CompactedTopic) -> None:
    for number in range(12):
        topic.put((f"key-{number % 6}", str(number)))
        topic.seal()
    runs = 0
    while topic.compact(keys_max=2):
        runs += 1
    assert runs > 1
    assert topic.pairs() == [(6 + number, f"key-{number}", str(6 + number)) for number in range(6)]


def test_long_keys_are_told_apart(topic: CompactedTopic) -> None:
    topic.put(("k" * 100 + "1", "a"), ("k" * 100 + "2", "b"), ("k" * 100 + "1", "c"))
    topic.seal()
    topic.compact()
    assert [(offset, value) for offset, _, value in topic.pairs()] == [(1, "b"), (2, "c")]


def test_a_segment_of_which_nothing_is_left_says_where_it_ended_and_readers_pass_over_it(topic: CompactedTopic) -> None:
    topic.log.config = replace(CONFIG, segment_bytes=100)
    topic.put(("a", "1" * 50))
    topic.seal()
    topic.put(("a", "2" * 50))
    topic.seal()
    topic.compact()
    assert topic.headers() == [(0, 0, 0), (1, 1, 1)]
    topic.log.close()
    for recovery_point in (2, None):
        topic.open(recovery_point=recovery_point)
        assert topic.pairs() == [(1, "a", "2" * 50)]
    assert topic.log.log_start_offset == 0


def test_compact_and_delete_together_remove_old_segments_as_well(files: Files) -> None:
    topic = CompactedTopic(files, replace(CONFIG, is_deleting=True, retention_ms=1000))
    topic.put(("a", "1"), ("b", "1"))
    topic.seal()
    topic.put(("a", "2"))
    topic.seal()
    topic.compact()
    topic.clock.time_ms += 1001
    topic.put(("c", "1"))
    for segment in topic.log.apply_retention(topic.clock.now_ms()):
        segment.remove()
    assert topic.pairs() == [(3, "c", "1")]


# --- transactions


def transactional(topic: CompactedTopic, producer_id: int, sequence: int, *pairs: tuple[str, str]) -> None:
    records = [NewRecord(START_MS, key.encode(), value.encode()) for key, value in pairs]
    topic.append_batch(
        build_batch(records, producer_id=producer_id, producer_epoch=0, base_sequence=sequence, is_transactional=True)
    )


def end(topic: CompactedTopic, producer_id: int, *, is_commit: bool) -> int:
    key, value = marker_record(TxnMarker(is_commit, 0))
    batch = build_batch(
        [NewRecord(START_MS, key, value)],
        producer_id=producer_id,
        producer_epoch=0,
        is_transactional=True,
        is_control=True,
    )
    return topic.append_batch(batch).base_offset


def reopen(topic: CompactedTopic) -> None:
    """So that the transaction index is built from the markers."""
    topic.log.close()
    topic.open()


def test_aborted_records_go_and_do_not_hide_earlier_ones(topic: CompactedTopic) -> None:
    topic.put(("a", "before"))
    transactional(topic, 1, 0, ("a", "aborted"), ("b", "aborted"))
    marker = end(topic, 1, is_commit=False)
    transactional(topic, 2, 0, ("c", "committed"))
    end(topic, 2, is_commit=True)
    topic.seal()
    reopen(topic)
    topic.compact()
    data = [pair for pair in topic.pairs() if pair[1] in {"a", "b", "c"}]
    assert data == [(0, "a", "before"), (4, "c", "committed")]
    assert marker in [header.base_offset for header in topic.log.iter_headers()]


def test_a_marker_goes_when_its_transaction_has_no_record_left_and_its_time_is_over(topic: CompactedTopic) -> None:
    transactional(topic, 1, 0, ("a", "1"))
    marker = end(topic, 1, is_commit=True)
    topic.put(("a", "2"))
    topic.seal()
    topic.compact()
    present = [h for h in topic.log.iter_headers() if h.base_offset == marker]
    assert present, "one run removed the record"
    assert not present[0].has_delete_horizon
    topic.put(("b", "1"))
    topic.seal()
    topic.compact()
    present = [h for h in topic.log.iter_headers() if h.base_offset == marker]
    assert present[0].has_delete_horizon, "the next run sets the time"
    topic.clock.time_ms += CONFIG.delete_retention_ms
    topic.put(("c", "1"))
    topic.seal()
    topic.compact()
    assert marker not in [header.base_offset for header in topic.log.iter_headers()]


# --- Kafka's own


def test_what_kafka_compacted_is_left_byte_for_byte_as_it_is(tmp_path: Path) -> None:
    copy = tmp_path / "golden-compact-0"
    shutil.copytree(GOLDEN / "golden-compact-0", copy)
    for path in (copy, *copy.iterdir()):
        path.chmod(0o755)
    log = open_log(copy)
    log.config = replace(CONFIG, index_interval_bytes=150)
    before = [bytes(batch) for batch in stored_batches(log)]
    states = ProducerStates()
    for header, marker in log.iter_batches(0):
        states.record(header, header.base_offset, 0, marker)
    job = run_compaction(log, now_ms=1_794_820_000_000, last_batches=states.last_batches(log.log_end_offset))
    assert job is not None
    assert not job.has_failed
    assert [bytes(batch) for batch in stored_batches(log)] == before
    long_after_ms = 1_881_216_865_763
    log.clean_end_offset = 0
    run_compaction(log, now_ms=long_after_ms, last_batches=states.last_batches(log.log_end_offset))
    keys = {record.key for batch in stored_batches(log) for record in decode_records(batch, max_bytes=1 << 20)}
    assert b"ck3" not in keys, "the tombstone's time is over"
    assert {b"ck0", b"ck1", b"ck2"} <= keys


@pytest.mark.kafka_peer
def test_kafkas_dump_log_reads_what_we_compacted(tmp_path: Path) -> None:
    need_kafka_tools()
    topic = CompactedTopic(DiskFiles(tmp_path))
    for number in range(40):
        pairs = [(f"key-{key}", None if number % 9 == 0 else f"value {number}") for key in range(number % 7 + 1)]
        topic.put(*pairs, codec=number % 5)
        if number % 10 == 9:
            topic.seal()
    topic.put(("gone", None))
    topic.put(("key-0", "x"), producer_id=3, producer_epoch=0, base_sequence=0)
    topic.put(("key-0", "y"))
    topic.seal()
    topic.last_batches = {3: LastBatch(0, topic.log.log_end_offset - 2)}
    topic.compact()
    topic.log.close()
    folder = tmp_path / DIRECTORY
    said = dump_log(
        sorted(folder.glob("*.log")) + sorted(folder.glob("*index")), "--deep-iteration", "--print-data-log"
    )
    assert "isvalid: false" not in said
    assert "ismatch" not in said
    assert "deleteHorizonMs: OptionalLong[" in said
    assert "count: 0 baseSequence: 0 lastSequence: 0 producerId: 3" in said


# --- hostile batches and damage


def hostile_batch() -> bytes:
    """A sound header and CRC over a compressed payload that is none."""
    batch = build_batch([NewRecord(START_MS, b"a", b"1")], codec=1)
    header = parse_header(batch)
    payload = b"\xff" * (header.size_bytes - 61)
    return pack_header(header._replace(crc=compute_crc(header, payload))) + payload


def test_a_hostile_batch_makes_the_log_uncleanable_and_changes_nothing(topic: CompactedTopic, files: Files) -> None:
    topic.put(("a", "1"))
    topic.put(("a", "2"))
    topic.seal()
    topic.append_batch(hostile_batch())
    topic.seal()
    names = files.list_dir(DIRECTORY)
    before = topic.fetch(0)
    assert topic.compact()
    assert topic.log.uncleanable
    assert topic.fetch(0) == before
    assert files.list_dir(DIRECTORY) == names
    assert not topic.compact(), "left alone from now on"


def test_a_damaged_batch_is_never_copied(tmp_path: Path) -> None:
    topic = CompactedTopic(DiskFiles(tmp_path))
    for number in range(3):
        topic.put(("a", str(number)))
    topic.seal()
    path = tmp_path / DIRECTORY / f"{0:020d}.log"
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)
    assert topic.compact()
    assert "damaged at byte" in topic.log.uncleanable
    assert path.read_bytes() == data


def test_a_full_disk_ends_the_run_and_the_log_goes_on(tmp_path: Path) -> None:
    files = MemoryFiles()
    topic = CompactedTopic(files)
    topic.put(("a", "1"), ("b", "1"))
    topic.put(("a", "2"))
    topic.seal()
    names = files.list_dir(DIRECTORY)
    files.free_bytes = 30
    with pytest.raises(Exception, match="disk failed"):
        topic.compact()
    assert files.list_dir(DIRECTORY) == names
    files.free_bytes = None
    assert topic.compact()
    assert topic.pairs() == [(1, "b", "1"), (2, "a", "2")]


def test_readers_that_began_before_a_swap_finish_with_what_they_began(topic: CompactedTopic) -> None:
    topic.put(("a", "1"))
    topic.put(("a", "2"))
    topic.seal()
    read = topic.log.read(0, max_bytes=1 << 20, end_offset=2, at_least_one=True)
    before = read.ranges[0].read()
    topic.compact()
    assert read.ranges[0].read() == before
    read.release()


def test_bit_six_is_the_delete_horizon() -> None:
    assert DELETE_HORIZON_BIT == 1 << 6
