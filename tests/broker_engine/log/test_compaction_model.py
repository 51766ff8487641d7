"""Compaction against a dict: whatever is written, compacted, crashed and reopened, the log says what the dict says."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from broker_engine.log.config import LogConfig
from broker_engine.log.file_seam import FileHandle, Part
from broker_engine.log.files import MemoryFiles
from broker_engine.records.builder import NewRecord, build_batch
from tests.broker_engine.log.compacting import run_compaction
from tests.broker_engine.log.harness import DIRECTORY, LogHarness

CONFIG = LogConfig(
    is_compacting=True,
    is_deleting=False,
    segment_bytes=400,
    index_interval_bytes=100,
    min_cleanable_dirty_ratio=0,
    delete_retention_ms=1000,
)
Pairs = list[tuple[bytes, bytes | None]]
keys = st.sampled_from([b"a", b"b", b"c", b"d", b"a-key-that-is-longer-than-sixteen-bytes"])
pairs = st.lists(st.tuples(keys, st.none() | st.binary(max_size=30)), min_size=1, max_size=4)


class Crash(Exception):
    """Power failure, or the process is killed."""


class CompactionMachine(RuleBasedStateMachine):
    @initialize()
    def start(self) -> None:
        self.files = MemoryFiles()
        self.harness = LogHarness(self.files, CONFIG)
        self.written: list[tuple[int, bytes, bytes | None]] = []

    @rule(batch=pairs, codec=st.integers(0, 4))
    def put(self, batch: Pairs, codec: int) -> None:
        records = [NewRecord(self.harness.clock.now_ms(), key, value) for key, value in batch]
        base_offset = self.harness.append_batch(build_batch(records, codec=codec)).base_offset
        self.written += [(base_offset + index, *pair) for index, pair in enumerate(batch)]

    @rule()
    def roll(self) -> None:
        self.harness.log.roll()

    @rule(step_ms=st.integers(1, 700))
    def time_passes(self, step_ms: int) -> None:
        self.harness.clock.time_ms += step_ms

    @rule(keys_max=st.sampled_from([1, 3, 1000]))
    def compact(self, keys_max: int) -> None:
        self._compact(keys_max=keys_max, on_step=lambda step: None)

    @rule(
        crash_at=st.sampled_from(["prepared", "cleaned", "swapped in", "finished", "settled"]), is_power=st.booleans()
    )
    def crash_in_a_compaction(self, crash_at: str, is_power: bool) -> None:
        self._flush()

        def stop(step: str) -> None:
            if step == crash_at:
                raise Crash

        try:
            self._compact(keys_max=1000, on_step=stop)
        except Crash:
            if is_power:
                self.files.crash()
        self.harness.open(recovery_point=None if is_power else self.harness.log.durable_end_offset)

    @rule(is_known=st.booleans())
    def reopen(self, is_known: bool) -> None:
        self._flush()
        self.harness.log.close()
        self.harness.open(recovery_point=self.harness.log.log_end_offset if is_known else None)

    def _flush(self) -> None:
        job = self.harness.log.flush_job()
        if job is not None:
            job.run()
            self.harness.log.on_flushed(job)

    def _compact(self, *, keys_max: int, on_step: Callable[[str], None]) -> None:
        job = run_compaction(self.harness.log, now_ms=self.harness.clock.now_ms(), keys_max=keys_max, on_step=on_step)
        assert job is None or not job.has_failed

    @invariant()
    def the_log_says_what_the_dict_says(self) -> None:
        if not hasattr(self, "harness"):
            return
        stored = [(record.offset, record.key, record.value) for record in self.harness.records()]
        assert set(stored) <= set(self.written), "nothing is changed or renumbered"
        assert [offset for offset, _, _ in stored] == sorted({offset for offset, _, _ in stored})
        assert materialize([(key, value) for _, key, value in stored if key is not None]) == materialize(
            [(key, value) for _, key, value in self.written]
        )
        assert self.harness.log.log_end_offset == (self.written[-1][0] + 1 if self.written else 0)


def materialize(records: Sequence[tuple[bytes, bytes | None]]) -> dict[bytes, bytes]:
    state: dict[bytes, bytes] = {}
    for key, value in records:
        state.pop(key, None)
        if value is not None:
            state[key] = value
    return state


TestCompactionModel = CompactionMachine.TestCase
TestCompactionModel.settings = settings(max_examples=80, stateful_step_count=40, deadline=None)


class CountingFiles(MemoryFiles):
    """Stops everything before the n-th change to a directory or file."""

    def __init__(self) -> None:
        super().__init__()
        self.changes_left: int | None = None

    def count(self) -> None:
        if self.changes_left is not None:
            if self.changes_left == 0:
                raise Crash
            self.changes_left -= 1

    def open(self, path: str, *, create: bool = False) -> FileHandle:
        if create:
            self.count()
        return super().open(path, create=create)

    def take_room(self, wanted_bytes: int) -> int:
        self.count()
        return super().take_room(wanted_bytes)

    def rename(self, old: str, new: str) -> None:
        self.count()
        super().rename(old, new)

    def unlink(self, path: str) -> None:
        self.count()
        super().unlink(path)

    def sync_dir(self, path: str) -> None:
        self.count()
        super().sync_dir(path)

    def write_atomic(self, path: str, data: bytes | Part, *, is_durable: bool) -> None:
        self.count()
        super().write_atomic(path, bytes(data), is_durable=is_durable)


def crashed_after(changes: int, *, is_power: bool) -> LogHarness | None:
    """A log whose compaction was stopped after so many changes, opened again; None if it came to its end."""
    files = CountingFiles()
    harness = LogHarness(files, CONFIG)
    for number in range(12):
        harness.append_batch(build_batch([NewRecord(number, b"key-%d" % (number % 5), b"v%d" % number * 10)]))
    harness.log.roll()
    harness.flush()
    files.changes_left = changes
    try:
        run_compaction(harness.log, now_ms=harness.clock.now_ms())
        return None
    except Crash:
        files.changes_left = None
    if is_power:
        files.crash()
    harness.open(recovery_point=12)
    return harness


@pytest.mark.parametrize("is_power", [True, False], ids=["power", "process"])
def test_a_crash_at_any_change_to_the_disk_leaves_the_old_or_the_new(is_power: bool) -> None:
    expected = {b"key-%d" % key: 10 + key if key < 2 else 5 + key for key in range(5)}
    changes = 0
    while (harness := crashed_after(changes, is_power=is_power)) is not None:
        records = harness.records()
        offsets = [record.offset for record in records]
        assert offsets == sorted(set(offsets)), f"after {changes} changes"
        assert {record.key: record.offset for record in records} == expected
        assert harness.log.log_end_offset == 12
        leftovers = [name for name in harness.files.list_dir(DIRECTORY) if name.endswith((".swap", ".cleaned"))]
        assert leftovers == []
        assert harness.append(b"goes on").base_offset == 12
        changes += 1
    assert changes > 15


def test_kafkas_unfinished_swap_is_finished() -> None:
    files = MemoryFiles()
    harness = LogHarness(files, CONFIG)
    for number in range(6):
        harness.append_batch(build_batch([NewRecord(number, b"k", b"v%d" % number)]))
        harness.log.roll()
    cleaned = harness.fetch(5)
    harness.flush()
    harness.log.close()
    files.write_atomic(f"{DIRECTORY}/{0:020d}.log.swap", cleaned, is_durable=True)
    files.write_atomic(f"{DIRECTORY}/{0:020d}.timeindex.swap", b"", is_durable=True)
    files.write_atomic(f"{DIRECTORY}/{3:020d}.log.cleaned", b"half", is_durable=True)
    log = harness.open(recovery_point=6)
    assert [record.offset for record in harness.records()] == [5]
    assert log.log_end_offset == 6
