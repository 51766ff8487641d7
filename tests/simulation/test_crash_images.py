"""The log boots, right, on every disk that a crash leaves of a workload; and what finds no bugs finds planted ones."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from functools import partial

import pytest

from broker_engine.clock import Clock
from broker_engine.log.checkpoints import EpochCache
from broker_engine.log.config import LogConfig
from broker_engine.log.files import FileHandle, Files
from broker_engine.log.flush import FlushJob, run_together
from broker_engine.log.partition_log import PartitionLog
from broker_engine.log.segment import Segment
from broker_engine.simulator import crash_images
from broker_engine.simulator.crash_images import CrashImages, Outcome, Plan
from broker_engine.simulator.recording import RecordingFiles
from broker_engine.simulator.workload import COMPACTING, DELETING, DIRECTORY, TOPIC_ID, Workload

POLICIES = pytest.mark.parametrize("config", [DELETING, COMPACTING], ids=["delete", "compact"])
SMALL = partial(Plan, operation_count=150, samples_per_operation=1, cuts_per_write=3)


@pytest.fixture(autouse=True)
def silence() -> Iterator[None]:
    """Thousands of logs say that they were cut."""
    logging.disable(logging.ERROR)
    yield
    logging.disable(logging.NOTSET)


def assert_nothing_found(outcome: Outcome) -> None:
    assert not outcome.findings, "\n".join(map(str, outcome.findings.values()))


def invariants_found(images: CrashImages, *, findings_max: int = 1) -> set[int]:
    return {violation.invariant for violation in images.run(findings_max=findings_max).findings}


@POLICIES
def test_a_log_survives_every_crash_of_a_short_life(config: LogConfig) -> None:
    outcome = CrashImages(SMALL(config=config)).run()
    assert_nothing_found(outcome)
    assert outcome.image_count > 4 * outcome.operation_count


@pytest.mark.slow
@pytest.mark.timeout(1_800)
@POLICIES
@pytest.mark.parametrize("seed", [11, 12, 13])
def test_a_log_survives_every_crash_of_a_long_life(config: LogConfig, seed: int) -> None:
    assert_nothing_found(CrashImages(Plan(seed=seed, config=config, operation_count=2000, cuts_per_write=16)).run())


def test_the_same_seed_finds_the_same() -> None:
    plan = SMALL(operation_count=60)
    first, second = CrashImages(plan), CrashImages(plan)
    assert first.operations == second.operations
    assert (first.run().image_count, CrashImages(SMALL(seed=1)).operations != first.operations) == (
        second.run().image_count,
        True,
    )


def test_the_command_says_how_many_images_it_booted(capsys: pytest.CaptureFixture[str]) -> None:
    assert crash_images.main(["--operations", "20", "--samples", "1", "--cuts", "1"]) == 0
    last_line = capsys.readouterr().out.splitlines()[-1]
    assert last_line.startswith("crash images: ")
    assert last_line.endswith(" booted, violations 0")


class FlushesTogether(Workload):
    """As one log of a crowd that is flushed by one sync of the whole file system."""

    def _sync(self, job: FlushJob) -> None:
        assert run_together(self._files, [job]) is None


@POLICIES
def test_a_log_that_is_flushed_in_a_crowd_survives_too(config: LogConfig) -> None:
    assert_nothing_found(CrashImages(SMALL(config=config, operation_count=400), workload=FlushesTogether).run())


# --- planted bugs


class NoDirectorySyncs(RecordingFiles):
    def sync_dir(self, path: str) -> None:
        pass


@POLICIES
def test_finds_names_that_were_never_synced(config: LogConfig) -> None:
    assert invariants_found(CrashImages(SMALL(config=config), recording=NoDirectorySyncs)) == {2}


class PromisesBeforeTheSync(Workload):
    def flush(self) -> None:
        self._note_durable(self.log.log_end_offset)
        super().flush()


def test_finds_a_promise_that_comes_before_the_sync() -> None:
    assert invariants_found(CrashImages(SMALL(), workload=PromisesBeforeTheSync)) == {2}


class ManyTransactions(Workload):
    """A marker, or the end of a segment, often comes between a flush and a compaction."""

    def _steps(self) -> list[tuple[Callable[[], object], int]]:
        return [
            (self.append, 60),
            (self.end_transaction, 30),
            (self.flush, 20),
            (self.log_roll, 10),
            (self.compact, 15),
        ]


class CompactsByMarkersInThePageCache(ManyTransactions):
    def compact(self) -> None:
        self._cleanable_offset = self.log.log_end_offset
        super().compact()


@pytest.mark.parametrize(
    ("workload", "found"),
    [(ManyTransactions, set()), (CompactsByMarkersInThePageCache, {7})],
    ids=["mended", "planted"],
)
def test_finds_a_compaction_that_counts_on_a_marker_which_a_crash_can_take_away(
    workload: type[Workload], found: set[int]
) -> None:
    plan = SMALL(seed=21, config=COMPACTING, operation_count=220, samples_per_operation=0, cuts_per_write=0)
    assert invariants_found(CrashImages(plan, workload=workload)) == found


def boot_with_a_recovery_point_too_high(files: Files, config: LogConfig, clock: Clock) -> PartitionLog:
    return PartitionLog.open(files, DIRECTORY, config, clock, topic_id=TOPIC_ID, recovery_point=5)


def test_finds_a_torn_tail_that_is_taken_for_damage() -> None:
    assert 3 in invariants_found(CrashImages(SMALL(boot=boot_with_a_recovery_point_too_high)), findings_max=8)


def test_finds_a_recovery_that_trusts_indexes_which_nobody_synced(monkeypatch: pytest.MonkeyPatch) -> None:
    def none_to_sync(_segment: Segment) -> list[FileHandle]:
        return []

    monkeypatch.setattr(Segment, "_index_handles", none_to_sync)
    assert invariants_found(CrashImages(SMALL(seed=1, operation_count=400, samples_per_operation=3))) == {5}


def test_finds_a_checkpoint_that_is_believed_though_torn(monkeypatch: pytest.MonkeyPatch) -> None:
    parse = EpochCache.parse
    monkeypatch.setattr(EpochCache, "parse", lambda data: parse(data.rstrip(b"\n") + b"\n"))
    monkeypatch.setattr("broker_engine.log.recovery._is_contradicted", lambda *_arguments: False)  # the second net
    plan = SMALL(seed=2, operation_count=300, cuts_per_write=48)
    assert invariants_found(CrashImages(plan)) == {4}


def boot_that_keeps_leftovers(files: Files, config: LogConfig, clock: Clock) -> PartitionLog:
    log = crash_images.open_log(files, config, clock)
    files.write_atomic(f"{DIRECTORY}/half", b"", is_durable=False)
    files.rename(f"{DIRECTORY}/half", f"{DIRECTORY}/half.tmp")
    return log


def test_finds_what_a_boot_leaves_lying_about() -> None:
    assert invariants_found(CrashImages(SMALL(boot=boot_that_keeps_leftovers))) == {8}


def test_finds_a_recovery_that_promises_what_only_the_page_cache_holds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("broker_engine.log.recovery._sync_what_may_be_in_the_page_cache", lambda *_arguments: None)
    plan = SMALL(seed=2, operation_count=500)
    assert invariants_found(CrashImages(plan)) == {2}
