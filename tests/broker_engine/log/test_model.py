"""The log against a list: whatever is done to both, they hold the same records."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from broker_engine.log.config import LogConfig
from broker_engine.log.files import DiskFiles, Files, MemoryFiles
from broker_engine.records.batch import iter_batches, parse_header
from tests.broker_engine.log.harness import LogHarness

CONFIG = LogConfig(segment_bytes=500, index_interval_bytes=120, retention_ms=1000, retention_bytes=-1)
values = st.lists(st.binary(max_size=60), min_size=1, max_size=4)


class LogMachine(RuleBasedStateMachine):
    """`batches` is the model: (base offset, values, timestamp) of every batch from offset 0, deleted ones included."""

    files: Files

    @initialize()
    def start(self) -> None:
        self.files = self.make_files()
        self.harness = LogHarness(self.files, CONFIG)
        self.batches: list[tuple[int, list[bytes], int]] = []
        self.end_offset = self.start_offset = self.durable_offset = 0

    def make_files(self) -> Files:
        return MemoryFiles(now_ms=lambda: self.harness.clock.now_ms() if hasattr(self, "harness") else 0)

    @rule(batch=values, codec=st.integers(0, 4), age_ms=st.integers(0, 500))
    def append(self, batch: list[bytes], codec: int, age_ms: int) -> None:
        timestamp = self.harness.clock.now_ms() - age_ms
        result = self.harness.append(*batch, codec=codec, timestamp_ms=timestamp)
        assert result.base_offset == self.end_offset
        self.batches.append((self.end_offset, batch, timestamp))
        self.end_offset += len(batch)

    @rule()
    def roll(self) -> None:
        self.harness.log.roll()

    @rule()
    def flush(self) -> None:
        job = self.harness.log.flush_job()
        if job is not None:
            job.run()
            self.durable_offset = self.harness.log.on_flushed(job)
            assert self.durable_offset == self.end_offset

    @rule(step_ms=st.integers(1, 800))
    def time_passes(self, step_ms: int) -> None:
        self.harness.clock.time_ms += step_ms

    @rule()
    def apply_retention(self) -> None:
        now_ms = self.harness.clock.now_ms()
        for segment in self.harness.log.apply_retention(now_ms):
            segment.remove()
        start = self.harness.log.log_start_offset
        gone = [stamp for base, _, stamp in self.batches if self.start_offset <= base < start]
        assert all(now_ms - stamp > CONFIG.retention_ms for stamp in gone)
        self.start_offset = start

    @rule(fraction=st.floats(0, 1))
    def delete_records(self, fraction: float) -> None:
        offset = self.start_offset + round((self.end_offset - self.start_offset) * fraction)
        self.harness.log.delete_records_before(offset)
        self.start_offset = offset

    @rule(is_clean=st.booleans())
    def reopen(self, is_clean: bool) -> None:
        if is_clean:
            self.flush()
        self.harness.log.close()
        recovery_point = self.end_offset if is_clean else None
        self.harness.open(recovery_point=recovery_point, log_start_offset=self.start_offset)
        self.durable_offset = self.end_offset

    @precondition(lambda self: len(self.batches) > 0)
    @rule(data=st.data())
    def truncate(self, data: st.DataObject) -> None:
        bases = [base for base, _, _ in self.batches if base >= self.start_offset]
        if bases:
            self._forget_from(data.draw(st.sampled_from(bases)))
            self.harness.log.truncate_to(self.end_offset)

    def _forget_from(self, offset: int) -> None:
        self.batches = [batch for batch in self.batches if batch[0] < offset]
        self.end_offset = offset
        self.durable_offset = min(self.durable_offset, offset)

    @invariant()
    def all_records_are_as_in_the_model(self) -> None:
        log = self.harness.log
        assert (log.log_start_offset, log.log_end_offset) == (self.start_offset, self.end_offset)
        assert self.durable_offset <= log.durable_end_offset <= self.end_offset
        expected = [
            (base + index, value, stamp)
            for base, batch, stamp in self.batches
            for index, value in enumerate(batch)
            if base + index >= self.start_offset
        ]
        assert [(r.offset, r.value, r.timestamp) for r in self.harness.records()] == expected

    @precondition(lambda self: self.end_offset > self.start_offset)
    @rule(data=st.data(), max_bytes=st.integers(0, 400), at_least_one=st.booleans())
    def read_in_the_middle(self, data: st.DataObject, max_bytes: int, at_least_one: bool) -> None:
        offset = data.draw(st.integers(self.start_offset, self.end_offset - 1))
        end_offset = data.draw(st.sampled_from([*(base for base, _, _ in self.batches), self.end_offset]))
        read = self.harness.log.read(offset, max_bytes=max_bytes, end_offset=end_offset, at_least_one=at_least_one)
        found = b"".join(file_range.read() for file_range in read.ranges)
        read.release()
        headers = [parse_header(batch) for batch in iter_batches(found)]
        assert all(header.next_offset <= end_offset for header in headers)
        if headers:
            assert headers[0].base_offset <= offset <= headers[0].last_offset
            assert len(found) <= max(max_bytes, headers[0].size_bytes)
        elif at_least_one:
            assert offset >= end_offset

    @rule(timestamp_back_ms=st.integers(-10, 2000))
    def look_up_by_time(self, timestamp_back_ms: int) -> None:
        timestamp = self.harness.clock.now_ms() - timestamp_back_ms
        records = self.harness.records()
        expected = next((r.offset for r in records if r.timestamp >= timestamp), None)
        found = self.harness.log.find_by_timestamp(timestamp, self.end_offset)
        assert (found.offset if found else None) == expected


class MemoryLogMachine(LogMachine):
    @rule(kept_bytes=st.integers(0, 300))
    def crash(self, kept_bytes: int) -> None:
        """Power failure: what was durable is there, the rest is a prefix of what was appended."""
        assert isinstance(self.files, MemoryFiles)
        durable_before = self.harness.log.durable_end_offset
        self.files.crash(kept_unsynced_bytes=kept_bytes)
        self.harness.open()
        assert self.harness.log.log_end_offset >= durable_before
        self._forget_from(self.harness.log.log_end_offset)
        # A deletion that was not durable brings its records back: they are old, not wrong.
        self.start_offset = self.harness.log.log_start_offset


class DiskLogMachine(LogMachine):
    def make_files(self) -> Files:
        self.root = Path(tempfile.mkdtemp(prefix="log-model-"))
        return DiskFiles(self.root, open_files_max=2)

    def teardown(self) -> None:
        if hasattr(self, "root"):
            shutil.rmtree(self.root)


MODEL_SETTINGS = settings(max_examples=60, stateful_step_count=40, deadline=None)

TestMemoryLog = MemoryLogMachine.TestCase
TestMemoryLog.settings = MODEL_SETTINGS
TestDiskLog = DiskLogMachine.TestCase
TestDiskLog.settings = settings(MODEL_SETTINGS, max_examples=25)
