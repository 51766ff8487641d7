"""What the log must hold, invariant by invariant: each is shown here, or the tests that show it are named and called.

The words are those of the reliability notes. The simulator checks the same with faults at random (tests/simulation).
"""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from broker_engine.errors import BrokerError
from broker_engine.log.checkpoints import EPOCHS_FILE
from broker_engine.log.config import LogConfig
from broker_engine.log.files import DiskFiles, MemoryFiles
from broker_engine.partition.core import AckDurability, PartitionCore, PartitionSettings
from broker_engine.records.batch import ProduceLimits, check_produced, iter_batches, parse_header
from broker_engine.records.builder import NewRecord, build_batch
from broker_engine.records.header import CRC_START
from tests.broker_engine import test_serve
from tests.broker_engine.broker_process import BrokerProcess
from tests.broker_engine.log import (
    test_compaction,
    test_compaction_model,
    test_damage,
    test_durability,
    test_model,
    test_partition_log,
    test_producer_snapshots,
    test_txn_index,
)
from tests.broker_engine.log.harness import DIRECTORY, START_MS, LogHarness
from tests.broker_engine.server import test_checkpoints, test_scrubber

SMALL_SEGMENTS = LogConfig(segment_bytes=400, index_interval_bytes=100)
BATCH = build_batch([NewRecord(START_MS, b"k", b"v" * 40)])


def batch_of(record_count: int) -> bytes:
    return build_batch([NewRecord(START_MS, b"k", b"v")] * record_count)


class TestInvariant1:
    """No batch enters a log (produce, recovery past the recovery point) before its CRC verifies; a flipped bit that a
    reader of ours or the scrubber finds is quarantined, never spread."""

    @settings(deadline=None)
    @given(byte=st.integers(CRC_START - 4, len(BATCH) - 1), bit=st.integers(0, 7))
    def test_produce(self, byte: int, bit: int) -> None:
        damaged = bytearray(BATCH)
        damaged[byte] ^= 1 << bit
        with pytest.raises(BrokerError):
            check_produced(memoryview(damaged), produce_version=9, limits=ProduceLimits(), now_ms=START_MS)

    def test_recovery(self, tmp_path: Path) -> None:
        test_durability.test_a_flipped_bit_ends_the_log_where_it_is(tmp_path)

    def test_compaction(self, tmp_path: Path) -> None:
        test_compaction.test_a_damaged_batch_is_never_copied(tmp_path)

    async def test_scrubber(self, tmp_path: Path) -> None:
        await test_scrubber.test_rot_in_a_sealed_segment_is_found_counted_once_and_not_served(tmp_path)


class TestInvariant2(test_model.MemoryLogMachine.TestCase):  # type: ignore[misc]
    """After any crash recovery yields a prefix of what was appended; everything below the durable offset survives.

    The model crashes wherever it likes; `make crash-images` at every operation and every byte of the last 4 KiB.
    """

    settings = settings(test_model.MODEL_SETTINGS, max_examples=20)


def test_invariant_2_cut_at_every_byte(tmp_path: Path) -> None:
    """See TestInvariant2."""
    test_durability.test_what_was_flushed_survives_a_power_failure_and_the_rest_is_a_prefix()
    test_durability.test_a_torn_tail_is_cut_at_every_byte(tmp_path)


class TestInvariant3:
    """A bad batch at or above the recovery point is a torn tail, and cut; below it, it is corruption: quarantined,
    never cut off and served."""

    def test_above(self, tmp_path: Path) -> None:
        damaged = test_damage.DamagedLog(tmp_path)
        test_damage.test_a_bad_batch_above_the_recovery_point_is_a_torn_tail_and_later_segments_go(damaged)

    def test_below(self, tmp_path: Path) -> None:
        damaged = test_damage.DamagedLog(tmp_path)
        test_damage.test_damage_in_the_last_segment_below_the_recovery_point_keeps_what_follows(damaged)

    def test_a_lost_tail_below(self, tmp_path: Path) -> None:
        damaged = test_damage.DamagedLog(tmp_path)
        test_damage.test_a_tail_missing_below_the_recovery_point_is_a_hole_and_appends_go_behind_it(damaged)


@settings(max_examples=60, deadline=None)
@given(
    steps=st.lists(st.tuples(st.sampled_from(["append", "epoch", "roll", "cut"]), st.integers(1, 5)), max_size=40),
    is_compacted=st.booleans(),
)
def test_invariant_4(steps: list[tuple[str, int]], is_compacted: bool) -> None:
    """Offsets in a log strictly increase; leader epochs never decrease along it; the epoch cache is the one that the
    batches would give."""
    config = LogConfig(segment_bytes=400, index_interval_bytes=100, is_compacting=is_compacted)
    harness, epoch = LogHarness(MemoryFiles(), config), 0
    for step, number in steps:
        if step == "append":
            harness.append_batch(batch_of(number), epoch=epoch)
        elif step == "epoch":
            epoch += number
        elif step == "roll":
            harness.log.roll()
        else:
            harness.log.truncate_to(max(0, harness.log.log_end_offset - number))
    headers = [parse_header(batch) for batch in _all_batches(harness)]
    for before, after in pairwise(headers):
        assert before.last_offset < after.base_offset
        assert before.partition_leader_epoch <= after.partition_leader_epoch
    kept = _epochs_of_records(harness)
    harness.log.close()
    if harness.files.exists(f"{DIRECTORY}/{EPOCHS_FILE}"):
        harness.files.unlink(f"{DIRECTORY}/{EPOCHS_FILE}")
    harness.open()
    assert _epochs_of_records(harness) == kept


def _all_batches(harness: LogHarness) -> list[memoryview]:
    batches: list[memoryview] = []
    offset = harness.log.log_start_offset
    while found := list(iter_batches(harness.fetch(offset))):
        batches += found
        offset = parse_header(found[-1]).next_offset
    return batches


def _epochs_of_records(harness: LogHarness) -> list[tuple[int, ...]]:
    """Without terms that have no record (yet): no batch tells of them."""
    return [tuple(entry) for entry in harness.log.epochs.entries if entry.start_offset < harness.log.log_end_offset]


class TestInvariant5:
    """Offset, time and transaction indexes and producer snapshots are caches: deleting them all and restarting changes
    no answer."""

    def test_indexes_and_epochs(self, tmp_path: Path) -> None:
        test_durability.test_indexes_and_epochs_are_caches(DiskFiles(tmp_path))

    def test_transaction_index(self) -> None:
        files = MemoryFiles()
        transactional = test_txn_index.TransactionalLog(files)
        transactional.play()
        test_txn_index.test_an_index_that_is_torn_or_gone_with_the_others_is_rebuilt(transactional, files)

    def test_producer_snapshots(self) -> None:
        files = MemoryFiles()
        leader = test_producer_snapshots.Leader(files)
        leader.produce(30)
        test_producer_snapshots.test_without_any_snapshot_the_answers_are_the_same(leader, files)


@settings(max_examples=60, deadline=None)
@given(
    durability=st.sampled_from(AckDurability),
    steps=st.lists(st.tuples(st.sampled_from(["append", "flush", "delete", "restart"]), st.integers(1, 5))),
)
def test_invariant_6(durability: AckDurability, steps: list[tuple[str, int]]) -> None:
    """Log start <= high watermark <= log end, last stable offset <= high watermark, at all times."""
    harness = LogHarness(MemoryFiles(), SMALL_SEGMENTS)
    core = _core_of(harness, durability)
    for step, number in steps:
        if step == "append":
            batch = batch_of(number)
            core.on_appended(harness.append_batch(batch), parse_header(batch), START_MS)
        elif step == "flush" and (job := harness.log.flush_job()) is not None:
            job.run()
            core.on_flushed(harness.log.on_flushed(job))
        elif step == "delete":
            harness.log.delete_records_before(max(harness.log.log_start_offset, core.high_watermark - number))
            core.on_log_start(harness.log.log_start_offset)
        elif step == "restart":
            harness.log.close()
            harness.open(log_start_offset=harness.log.log_start_offset)
            core = _core_of(harness, durability)
        assert 0 <= harness.log.log_start_offset <= core.high_watermark <= core.log_end_offset
        assert core.log_end_offset == harness.log.log_end_offset
        assert core.last_stable_offset <= core.high_watermark


def _core_of(harness: LogHarness, durability: AckDurability) -> PartitionCore:
    return PartitionCore(
        leader_epoch=0,
        replicas=(1,),
        isr=(1,),
        log_start_offset=harness.log.log_start_offset,
        log_end_offset=harness.log.log_end_offset,
        durable_end_offset=harness.log.durable_end_offset,
        settings=PartitionSettings(ack_durability=durability),
    )


@pytest.mark.parametrize("broken", [b"", b"0\n", b"0\n2\norders 0 5\n", b"\xff\xfe"])
def test_invariant_6_checkpoints_parse_or_are_ignored(broken: bytes) -> None:
    """Second half of invariant 6."""
    test_checkpoints.test_a_checkpoint_that_does_not_parse_is_as_good_as_none(broken)


class TestInvariant7(test_compaction_model.CompactionMachine.TestCase):  # type: ignore[misc]
    """Compaction and retention never remove the latest committed value of a key, anything at or above the last stable
    offset, tombstones and markers before their time, the active segment; they never reorder or renumber."""

    settings = settings(max_examples=20, stateful_step_count=40, deadline=None)


def test_invariant_7_case_by_case() -> None:
    """See TestInvariant7."""
    for story in (
        test_compaction.test_nothing_at_or_above_the_limit_is_touched,
        test_compaction.test_tombstones_stay_for_their_retention_time_and_then_go,
        test_compaction.test_a_marker_goes_when_its_transaction_has_no_record_left_and_its_time_is_over,
        test_compaction.test_the_active_segment_is_left_alone_but_its_keys_do_not_count_yet,
    ):
        story(test_compaction.CompactedTopic(MemoryFiles()))
    test_partition_log.test_retention_stops_at_the_high_watermark_and_at_a_compacted_topic(MemoryFiles())


class TestInvariant8:
    """Swaps, renames and deletions of segments are atomic under a crash; left-over temporary files go, and a directory
    that the metadata do not know is renamed to -stray and kept."""

    @pytest.mark.parametrize("is_power", [True, False])
    def test_swap(self, is_power: bool) -> None:
        test_compaction_model.test_a_crash_at_any_change_to_the_disk_leaves_the_old_or_the_new(is_power)

    def test_deletion(self) -> None:
        test_durability.test_a_deletion_that_a_crash_cut_short_is_finished_at_the_next_start(MemoryFiles())

    def test_stray(self, tmp_path: Path) -> None:
        broker = BrokerProcess(tmp_path / "broker").start()
        test_serve.test_directories_of_nobody_are_set_aside_and_half_deleted_ones_go(broker)


def test_invariant_9() -> None:
    """After a failed sync the log goes offline; no file of it is synced again and its tail never counts as durable."""
    test_durability.test_after_a_failed_sync_the_log_is_offline_and_never_synced_again()
