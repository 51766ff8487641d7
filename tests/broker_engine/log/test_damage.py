"""Damage to what was durable once is neither cut away nor served: the rest of the log goes on."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from itertools import accumulate, combinations
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from broker_engine.errors import BrokerError, ErrorCode
from broker_engine.log.compaction import read_batches
from broker_engine.log.config import LogConfig
from broker_engine.log.damage import QUARANTINE_FILE, Hole, format_holes, parse_holes
from broker_engine.log.files import DiskFiles, MemoryFiles
from broker_engine.log.recovery import CUT_OFF_SUFFIX
from broker_engine.log.results import LogState
from broker_engine.records.batch import CorruptBatch, iter_batches, parse_header
from broker_engine.records.builder import NewRecord, build_batch
from broker_engine.records.header import HEADER_SIZE_BYTES
from tests.broker_engine.log.harness import DIRECTORY, LogHarness, numbered

CONFIG = LogConfig(segment_bytes=500, index_interval_bytes=100)
BATCH_COUNT = 20
UNCOVERED_BYTES = {*range(8), *range(12, 16)}
"""Base offset and leader epoch: the broker writes them, and no CRC covers them, as in Kafka."""
BATCH_BYTES = len(build_batch([NewRecord(0, b"k", numbered(1)[0])]))


class DamagedLog:
    """Twenty one-record batches in several segments, and hands that flip bits."""

    def __init__(self, root: Path) -> None:
        self.root = root / DIRECTORY
        self.harness = LogHarness(DiskFiles(root), CONFIG)
        self.starts: dict[int, tuple[Path, int]] = {}
        for value in numbered(BATCH_COUNT):
            result = self.harness.append(value)
            path = self.root / f"{self.harness.log.segment_bases[-1]:020d}.log"
            self.starts[result.base_offset] = (path, path.stat().st_size - BATCH_BYTES)
        self.harness.flush()
        self.bases = self.harness.log.segment_bases
        assert len(self.bases) > 3

    def flip(self, offset: int, byte: int = 70) -> bytes:
        """Damage the batch that holds `offset`; the file as it is then."""
        path, position = self.starts[offset]
        data = bytearray(path.read_bytes())
        data[position + byte] ^= 0xFF
        path.write_bytes(data)
        return bytes(data)

    def without_indexes(self) -> None:
        for path in self.root.iterdir():
            if path.suffix in {".index", ".timeindex"}:
                path.unlink()

    def readable(self) -> list[int]:
        """Offsets that a patient consumer gets, asking for each in turn."""
        return [offset for offset in range(self.harness.log.log_end_offset) if self._can_read(offset)]

    def _can_read(self, offset: int) -> bool:
        try:
            return parse_header(self.harness.fetch(offset)).base_offset == offset
        except BrokerError:
            return False


@pytest.fixture
def damaged(tmp_path: Path) -> DamagedLog:
    return DamagedLog(tmp_path)


def fetch_error(harness: LogHarness, offset: int) -> BrokerError:
    with pytest.raises(BrokerError) as raised:
        harness.fetch(offset)
    return raised.value


@pytest.mark.parametrize("byte", [70, 16, 9, 0], ids=["payload", "magic", "length", "offset"])
def test_a_bad_batch_in_a_sealed_segment_is_found_by_verifying_and_only_it_is_lost(
    damaged: DamagedLog, byte: int
) -> None:
    harness, log = damaged.harness, damaged.harness.log
    data = damaged.flip(6, byte)
    assert log.state is LogState.ONLINE
    for base in log.segment_bases:
        if (job := log.verify_job(base)) is not None:
            job.run()
            log.on_verified(job)
    assert log.state is LogState.DAMAGED
    assert [(hole.start_offset, hole.end_offset) for hole in log.holes] == [(6, 7)]
    error = fetch_error(harness, 6)
    assert (error.code, error.message) == (ErrorCode.KAFKA_STORAGE_ERROR, "offsets 6 to 6 are damaged on disk")
    assert [record.offset for record in harness.records(7)] == list(range(7, BATCH_COUNT))
    assert harness.append(b"more").base_offset == BATCH_COUNT
    path, _ = damaged.starts[6]
    assert path.read_bytes() == data


def test_a_fetch_before_the_damage_ends_before_it(damaged: DamagedLog) -> None:
    damaged.flip(6)
    log = damaged.harness.log
    job = log.verify_job(max(base for base in log.segment_bases if base <= 6))
    assert job is not None
    job.run()
    log.on_verified(job)
    base = job.segment.base_offset
    assert len(damaged.harness.fetch(base)) == BATCH_BYTES * (6 - base)


@settings(max_examples=150, deadline=None)
@given(
    batch=st.integers(0, BATCH_COUNT - 1),
    byte=st.integers(0, HEADER_SIZE_BYTES - 1) | st.integers(0, BATCH_BYTES - 1),
    bit=st.integers(0, 7),
)
def test_whichever_bit_flips_no_reader_is_led_past_records_before_anybody_verified_them(
    batch: int, byte: int, bit: int
) -> None:
    """A rotten length or offset hides batches: what was missing then looked as if compaction had taken it."""
    files = MemoryFiles()
    harness = LogHarness(files, CONFIG)
    for value in numbered(BATCH_COUNT):
        harness.append(value)
    base = max(base for base in harness.log.segment_bases if base <= batch)
    files._files[f"{DIRECTORY}/{base:020d}.log"].data[(batch - base) * BATCH_BYTES + byte] ^= 1 << bit
    for offset in range(BATCH_COUNT):
        doubted: list[int] = []
        harness.log.on_doubted = doubted.append
        with suppress(BrokerError):
            assert parse_header(harness.fetch(offset)).base_offset <= offset
            continue
        assert doubted == [offset]


SHIFTS = [(batch, bit) for batch in range(8) for bit in range(5)]
"""Of a base offset, so that the batch seems to lie elsewhere in the segment, or just outside of it."""


@pytest.mark.parametrize("count", [1, 2])
def test_whichever_offsets_rot_the_batches_of_another_replica_in_place_of_the_holes_make_it_whole(count: int) -> None:
    """No CRC covers them. The sound neighbour was taken for the rotten one, and mending left it out for good."""
    files = MemoryFiles()
    harness = LogHarness(files, LogConfig())
    for number in (1, 1, 2, 1, 3, 1, 1, 2):
        harness.append(*numbered(number))
    harness.log.roll()
    data = files._files[f"{DIRECTORY}/{0:020d}.log"].data
    batches = {parse_header(batch).base_offset: bytes(batch) for batch in iter_batches(bytes(data))}
    before, starts = bytes(data), list(accumulate(map(len, batches.values()), initial=0))
    for shifts in combinations(SHIFTS, count):
        for batch, bit in shifts:
            data[starts[batch] + 7] ^= 1 << bit
        job = harness.log.verify_job(0)
        assert job is not None
        job.run()
        job.release()
        mended, position = b"", 0
        for hole in job.holes:
            mended += data[position : hole.position]
            mended += b"".join(batches.get(offset, b"") for offset in range(hole.start_offset, hole.end_offset))
            position = hole.end_position
        assert mended + data[position:] == before, shifts
        data[:] = before


@pytest.mark.parametrize(("byte", "bit"), [(7, 2), (15, 0)], ids=["offset", "epoch"])
@pytest.mark.parametrize("recovery_point", [0, 5])
def test_recovery_believes_no_batch_that_the_next_one_contradicts(byte: int, bit: int, recovery_point: int) -> None:
    """Else what is behind it is gone, and a follower goes on behind a place where it never was."""
    files = MemoryFiles()
    harness = LogHarness(files, LogConfig())
    for value in numbered(5):
        harness.append(value)
    harness.flush()
    path = f"{DIRECTORY}/{0:020d}.log"
    data = bytearray(files.read_small(path))
    data[2 * BATCH_BYTES + byte] ^= 1 << bit
    files.write_atomic(path, bytes(data), is_durable=True)
    log = harness.open(recovery_point=recovery_point)
    assert [(hole.start_offset, hole.end_offset) for hole in log.holes] == ([(2, 3)] if recovery_point else [])
    assert (log.log_end_offset, log.latest_epoch) == (5 if recovery_point else 2, 0)


def test_compaction_takes_no_batch_that_is_out_of_order() -> None:
    files = MemoryFiles()
    harness = LogHarness(files, LogConfig())
    for value in numbered(5):
        harness.append(value)
    harness.log.roll()
    files._files[f"{DIRECTORY}/{0:020d}.log"].data[2 * BATCH_BYTES + 7] ^= 4
    with pytest.raises(CorruptBatch):
        list(read_batches(harness.log._segments[0]))


def rot(files: MemoryFiles, base_offset: int, position: int) -> None:
    """Bytes change under a log that is open."""
    files._files[f"{DIRECTORY}/{base_offset:020d}.log"].data[position] ^= 0xFF


@pytest.mark.parametrize("byte", [8, 9], ids=["negative length", "length"])
def test_readers_of_committed_records_get_nothing_behind_them_past_damage_that_nobody_knows(byte: int) -> None:
    files = MemoryFiles()
    harness = LogHarness(files, LogConfig(index_interval_bytes=1 << 20))
    for value in numbered(4):
        harness.append(value)
    rot(files, 0, BATCH_BYTES + byte)
    with pytest.raises(BrokerError):
        harness.fetch(0, end_offset=2)


def test_a_hole_behind_offsets_that_are_missing_is_not_passed_over() -> None:
    """Kafka's compaction may leave nothing at a segment's end: who reads there goes on in the next one."""
    files = MemoryFiles()
    harness = LogHarness(files, LogConfig())
    for number, value in enumerate(numbered(9)):
        if number in (3, 6):
            harness.log.roll()
        harness.append(value)
    del files._files[f"{DIRECTORY}/{0:020d}.log"].data[2 * BATCH_BYTES :]
    assert parse_header(harness.fetch(2)).base_offset == 3
    rot(files, 3, 70)
    job = harness.log.verify_job(3)
    assert job is not None
    job.run()
    harness.log.on_verified(job)
    assert fetch_error(harness, 2).message == "offsets 3 to 3 are damaged on disk"


def test_known_damage_is_known_after_a_restart_that_verifies_nothing(damaged: DamagedLog) -> None:
    damaged.flip(6)
    damaged.without_indexes()
    first = damaged.harness.open(recovery_point=BATCH_COUNT)
    assert first.state is LogState.DAMAGED
    first.close()
    again = damaged.harness.open(recovery_point=BATCH_COUNT)
    assert again.holes == first.holes
    assert fetch_error(damaged.harness, 6).code is ErrorCode.KAFKA_STORAGE_ERROR


def test_damage_in_the_last_segment_below_the_recovery_point_keeps_what_follows(damaged: DamagedLog) -> None:
    offset = damaged.bases[-1] + 1
    data = damaged.flip(offset)
    damaged.without_indexes()
    log = damaged.harness.open(recovery_point=BATCH_COUNT)
    assert (log.state, log.log_end_offset) == (LogState.DAMAGED, BATCH_COUNT)
    path, _ = damaged.starts[offset]
    assert path.read_bytes() == data
    assert damaged.readable() == [number for number in range(BATCH_COUNT) if number != offset]
    assert damaged.harness.append(b"more").base_offset == BATCH_COUNT


def test_damage_that_is_known_is_no_torn_tail_after_a_crash_before_the_first_checkpoint(damaged: DamagedLog) -> None:
    """Or all that lies behind it would be cut off with it."""
    damaged.flip(6)
    job = damaged.harness.log.verify_job(max(base for base in damaged.bases if base <= 6))
    assert job is not None
    job.run()
    damaged.harness.log.on_verified(job)
    log = damaged.harness.open(recovery_point=None)
    assert [(hole.start_offset, hole.end_offset) for hole in log.holes] == [(6, 7)]
    assert damaged.readable() == [offset for offset in range(BATCH_COUNT) if offset != 6]


def test_segments_behind_a_torn_one_go_with_their_snapshots(tmp_path: Path) -> None:
    harness = LogHarness(DiskFiles(tmp_path), CONFIG)
    harness.log.pack_producers = lambda: b"what producers did"
    for value in numbered(BATCH_COUNT):
        harness.append(value)
    torn = tmp_path / DIRECTORY / f"{harness.log.segment_bases[1]:020d}.log"
    torn.write_bytes(torn.read_bytes()[:-10])
    log = harness.open(recovery_point=0)
    assert len(log.segment_bases) == 2
    assert [offset for offset, _ in log.producer_snapshots()] == [log.segment_bases[1]]
    assert harness.append(b"more").base_offset == log.log_end_offset - 1


def test_a_tail_missing_below_the_recovery_point_is_a_hole_and_appends_go_behind_it(damaged: DamagedLog) -> None:
    path, position = damaged.starts[BATCH_COUNT - 2]
    path.write_bytes(path.read_bytes()[:position])
    log = damaged.harness.open(recovery_point=BATCH_COUNT)
    assert (log.state, log.log_end_offset) == (LogState.DAMAGED, BATCH_COUNT)
    assert damaged.readable() == list(range(BATCH_COUNT - 2))
    assert damaged.harness.append(b"more").base_offset == BATCH_COUNT
    damaged.harness.flush()
    damaged.harness.log.close()
    reopened = damaged.harness.open(recovery_point=BATCH_COUNT + 1)
    assert (reopened.state, reopened.log_end_offset) == (LogState.DAMAGED, BATCH_COUNT + 1)
    assert damaged.harness.values(BATCH_COUNT) == [b"more"]


def test_a_bad_batch_above_the_recovery_point_is_a_torn_tail_and_later_segments_go(damaged: DamagedLog) -> None:
    damaged.flip(6)
    log = damaged.harness.open(recovery_point=4)
    assert (log.state, log.log_end_offset) == (LogState.ONLINE, 6)
    assert damaged.harness.append(b"again").base_offset == 6
    assert {int(path.stem) for path in damaged.root.glob("*.log")} == {base for base in damaged.bases if base <= 6}


def test_without_a_recovery_point_segments_behind_a_bad_batch_are_kept_aside(damaged: DamagedLog) -> None:
    damaged.flip(6)
    assert damaged.harness.open().log_end_offset == 6
    aside = {path.name.split(".")[0] for path in damaged.root.glob(f"*.log{CUT_OFF_SUFFIX}")}
    assert {int(name) for name in aside} == {base for base in damaged.bases if base > 6}
    damaged.harness.log.close()
    assert damaged.harness.open().log_end_offset == 6


def test_batches_lost_at_the_border_of_two_segments_end_the_log_there(damaged: DamagedLog) -> None:
    """A power failure may keep the later segment and lose the end of the earlier: the log stays a prefix."""
    path, position = damaged.starts[damaged.bases[2] - 1]
    path.write_bytes(path.read_bytes()[:position])
    assert damaged.harness.open(recovery_point=0).log_end_offset == damaged.bases[2] - 1


@settings(max_examples=150, deadline=None)
@given(
    position=st.integers(0, BATCH_BYTES * BATCH_COUNT - 1),
    bit=st.integers(0, 7),
    recovery_point=st.integers(0, BATCH_COUNT),
)
def test_whichever_bit_flips_below_the_recovery_point_all_other_records_survive(
    position: int, bit: int, recovery_point: int
) -> None:
    files = MemoryFiles()
    harness = LogHarness(files, LogConfig())
    for value in numbered(BATCH_COUNT):
        harness.append(value)
    harness.flush()
    path = f"{DIRECTORY}/{0:020d}.log"
    data = bytearray(files.read_small(path))
    data[position] ^= 1 << bit
    files.write_atomic(path, bytes(data), is_durable=True)
    victim = position // BATCH_BYTES
    log = harness.open(recovery_point=recovery_point)
    if position % BATCH_BYTES in UNCOVERED_BYTES:
        return
    if victim < recovery_point:
        assert [(hole.start_offset, hole.end_offset) for hole in log.holes] == [(victim, victim + 1)]
        assert [record.offset for record in harness.records(victim + 1)] == list(range(victim + 1, BATCH_COUNT))
    else:
        assert log.log_end_offset == victim
        assert len(harness.records()) == victim


def test_the_list_of_holes_parses_or_is_ignored(damaged: DamagedLog) -> None:
    holes = {0: [Hole(3, 4, 273, 364)], 100: [Hole(100, 110, 0, 5), Hole(120, 130, 50, 60)]}
    assert parse_holes(format_holes(holes)) == holes
    for broken in (b"", b"1\n0\n", b"0\n2\n1 2 3 4 5\n", b"0\n1\nx\n", b"\xff"):
        assert parse_holes(broken) == {}
    (damaged.root / QUARANTINE_FILE).write_bytes(b"\xff")
    assert damaged.harness.open(recovery_point=BATCH_COUNT).state is LogState.ONLINE


def test_what_cannot_be_read_is_not_taken_for_old(damaged: DamagedLog) -> None:
    """Nobody knows the times in it, and another replica may have it: its file's age is the only one that there is."""
    harness, first_end = damaged.harness, damaged.bases[1]
    for offset in range(first_end):
        damaged.flip(offset)
    damaged.without_indexes()
    harness.config = replace(CONFIG, retention_ms=1000)
    log = harness.open(recovery_point=BATCH_COUNT)
    assert [(hole.start_offset, hole.end_offset) for hole in log.holes] == [(0, first_end)]
    assert log.apply_retention(harness.clock.now_ms()) == []
    written_ms = max(int(path.stat().st_mtime * 1000) for path in damaged.root.glob("*.log"))
    assert [each.base_offset for each in log.apply_retention(written_ms + 1001)][:2] == [0, first_end]
