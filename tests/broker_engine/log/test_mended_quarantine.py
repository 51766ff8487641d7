"""A crash while a damaged segment is made whole: the list of damage never outlives what it tells of."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from broker_engine.log.files import DiskFiles
from broker_engine.log.mending import Mending
from broker_engine.log.partition_log import PartitionLog
from broker_engine.log.results import LogState
from broker_engine.simulator.index_oracle import index_problems
from tests.broker_engine.log.test_damage import BATCH_BYTES, BATCH_COUNT, DamagedLog

ROTTEN = 6


def until_it_is_cleaned(log: PartitionLog, mending: Mending) -> None:
    mending.clean()


def until_it_is_swapped(log: PartitionLog, mending: Mending) -> None:
    mending.clean()
    assert log.swap_in(mending) is not None


def until_it_has_its_name(log: PartitionLog, mending: Mending) -> None:
    until_it_is_swapped(log, mending)
    mending.finish()


@pytest.mark.parametrize("work", [until_it_is_cleaned, until_it_is_swapped, until_it_has_its_name])
def test_what_was_mended_before_a_crash_is_no_damage_after_it(
    tmp_path: Path, work: Callable[[PartitionLog, Mending], None]
) -> None:
    damaged = DamagedLog(tmp_path / "before")
    log = damaged.harness.log
    patch = damaged.harness.fetch(ROTTEN, max_bytes=BATCH_BYTES)
    damaged.flip(ROTTEN)
    base_offset = max(base for base in log.segment_bases if base <= ROTTEN)
    job = log.verify_job(base_offset)
    assert job is not None
    job.run()
    assert log.on_verified(job) is LogState.DAMAGED
    (hole,) = log.holes
    mending = log.mending_of(base_offset, {hole: patch})
    assert mending is not None
    work(log, mending)

    shutil.copytree(tmp_path / "before", tmp_path / "after")
    harness = damaged.harness
    harness.files = DiskFiles(tmp_path / "after")
    for _ in range(2):  # the second start finds what the first one left
        log = harness.open(recovery_point=BATCH_COUNT)
        assert log.state is LogState.ONLINE
        assert [record.offset for record in harness.records()] == list(range(BATCH_COUNT))
        assert list(index_problems(log)) == []
        log.close()
