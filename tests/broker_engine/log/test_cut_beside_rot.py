"""A cut beside a rotten batch takes nothing off that lies below it: what is rotten there waits to be mended."""

from __future__ import annotations

import pytest

from broker_engine.errors import BrokerError, ErrorCode
from broker_engine.log.config import LogConfig
from broker_engine.log.files import MemoryFiles
from broker_engine.records.batch import parse_header
from broker_engine.records.builder import NewRecord, build_batch
from tests.broker_engine.log.harness import DIRECTORY, LogHarness, numbered

BATCH_BYTES = len(build_batch([NewRecord(0, b"k", numbered(1)[0])]))
COUNT, CUT = 10, 6
FLIPS = [(byte, bit) for byte in (7, 9, 12, 15, 70) for bit in (0, 1, 2)]
"""Of base offset, length, leader epoch and payload."""


class RottenLog:
    """Ten batches of one record in the active segment."""

    def __init__(self) -> None:
        self.files = MemoryFiles()
        self.harness = LogHarness(self.files, LogConfig(index_interval_bytes=150))
        for value in numbered(COUNT):
            self.harness.append(value)
        self.harness.flush()
        self.log = self.harness.log
        self.doubted: list[int] = []
        self.log.on_doubted = self.doubted.append

    def flip(self, offset: int, byte: int, bit: int) -> None:
        self.files._files[f"{DIRECTORY}/{0:020d}.log"].data[offset * BATCH_BYTES + byte] ^= 1 << bit

    def cut(self, offset: int) -> bool:
        try:
            self.log.truncate_to(offset)
        except BrokerError as error:
            return error.code is not ErrorCode.KAFKA_STORAGE_ERROR
        return True

    def look_at_all(self) -> None:
        """As the mender does."""
        self.log.roll()
        job = self.log.verify_job(0)
        assert job is not None
        job.run()
        self.log.on_verified(job)

    def readable(self) -> list[int]:
        return [offset for offset in range(self.log.log_end_offset) if self._can_read(offset)]

    def _can_read(self, offset: int) -> bool:
        try:
            return parse_header(self.harness.fetch(offset)).base_offset == offset
        except BrokerError:
            return False


@pytest.mark.parametrize("rotten", range(COUNT))
def test_whichever_batch_is_rotten_a_cut_leaves_all_that_is_below_it(rotten: int) -> None:
    for byte, bit in FLIPS:
        story = RottenLog()
        story.flip(rotten, byte, bit)
        if not story.cut(CUT):
            assert story.doubted == [CUT], (byte, bit)
            assert story.log.log_end_offset == COUNT
            story.look_at_all()
            assert story.cut(CUT)
        assert story.log.log_end_offset == CUT, (byte, bit)
        assert {*story.readable(), rotten} >= set(range(CUT)), (byte, bit)
        assert story.harness.append(b"next").base_offset == CUT
        assert story.harness.values(CUT) == [b"next"]


@pytest.mark.parametrize("is_reopened", [False, True])
def test_what_is_lost_inside_of_a_hole_that_is_cut_is_still_lost_after_a_look_and_a_restart(
    is_reopened: bool,
) -> None:
    """Nothing in the file says that its end is missing: who forgot it would pass over committed records."""
    story = RottenLog()
    for offset in (4, 5, 6, 7):
        story.flip(offset, 70, 0)
    story.look_at_all()
    assert story.cut(CUT)
    if is_reopened:
        story.harness.append(b"next")
        story.harness.flush()
        story.log.close()
        story.log = story.harness.open(recovery_point=CUT + 1)
    story.look_at_all()
    assert [hole[:2] for hole in story.log.holes] == [(4, CUT)]
    assert story.readable()[:4] == [0, 1, 2, 3]


def test_a_cut_behind_offsets_that_compaction_took_makes_no_hole_of_them() -> None:
    story = RottenLog()
    data = story.files._files[f"{DIRECTORY}/{0:020d}.log"].data
    del data[4 * BATCH_BYTES : 7 * BATCH_BYTES]
    story.log = story.harness.open(recovery_point=0)
    assert story.log.log_end_offset == COUNT
    assert story.cut(CUT)
    assert (story.log.log_end_offset, story.log.holes) == (4, [])
