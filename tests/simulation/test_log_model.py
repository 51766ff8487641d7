"""A log on a failing disk against a list: what was promised survives, the rest is a prefix of what was appended."""

from __future__ import annotations

import errno
import logging
from random import Random

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from broker_engine.errors import BrokerError, ErrorCode
from broker_engine.log.config import LogConfig
from broker_engine.log.results import LogState
from broker_engine.records.batch import parse_header
from broker_engine.simulator.disk_faults import DiskCall
from broker_engine.simulator.sim_disk import SimDisk
from broker_engine.simulator.survival import KeepNames, KeepRandom, KeepSynced, Survival
from tests.broker_engine.log.harness import DIRECTORY, LogHarness, numbered

MAGIC_POSITION = 16
CONFIG = LogConfig(segment_bytes=600, index_interval_bytes=120, retention_ms=-1)
values = st.lists(st.binary(max_size=60), min_size=1, max_size=4)
survivals: st.SearchStrategy[Survival] = st.one_of(
    st.builds(KeepSynced),
    st.builds(KeepNames),
    st.integers(0, 1 << 32).map(lambda seed: KeepRandom(Random(seed))),
)


class FailingDiskMachine(RuleBasedStateMachine):
    """`batches` is the model: (base offset, values) of every batch; `durable_offset` is what the log promised."""

    @initialize()
    def start(self) -> None:
        logging.disable(logging.ERROR)
        self.disk = SimDisk()
        self.harness = LogHarness(self.disk, CONFIG)
        self.batches: list[tuple[int, list[bytes]]] = []
        self.end_offset = self.durable_offset = 0
        self.recovery_point: int | None = None
        self.epoch = 0

    def teardown(self) -> None:
        logging.disable(logging.NOTSET)

    @rule(batch=values, codec=st.integers(0, 4), is_new_epoch=st.booleans())
    def append(self, batch: list[bytes], codec: int, is_new_epoch: bool) -> None:
        self.epoch += is_new_epoch
        result = self.harness.append(*batch, codec=codec, epoch=self.epoch)
        assert result.base_offset == self.end_offset
        self.batches.append((self.end_offset, batch))
        self.end_offset += len(batch)

    @rule()
    def flush(self) -> None:
        job = self.harness.log.flush_job()
        if job is not None:
            job.run()
            self.durable_offset = self.harness.log.on_flushed(job)

    @rule()
    def checkpoint(self) -> None:
        self.recovery_point = self.durable_offset

    @rule()
    def roll(self) -> None:
        self.harness.log.roll()

    @rule(batch=values, written_bytes=st.integers(0, 60))
    def append_with_a_short_write(self, batch: list[bytes], written_bytes: int) -> None:
        self.disk.faults.shorten_next_write(written_bytes)
        self.attempt(batch)

    @rule(batch=values, room_bytes=st.integers(0, 60))
    def append_to_a_full_disk(self, batch: list[bytes], room_bytes: int) -> None:
        self.disk.faults.capacity_bytes = sum(self.disk.used_bytes()) + room_bytes
        self.attempt(batch)
        self.disk.faults.capacity_bytes = None

    @rule(batch=values)
    def append_with_an_error(self, batch: list[bytes]) -> None:
        self.disk.faults.fail_next(DiskCall.APPEND, error=errno.EIO)
        self.attempt(batch)

    def attempt(self, batch: list[bytes]) -> None:
        """All of it is in the log, since only a cache met the fault, or nothing."""
        try:
            self.append(batch, 0, is_new_epoch=False)
        except BrokerError as error:
            if error.code != ErrorCode.KAFKA_STORAGE_ERROR:
                raise
        self.disk.faults.forget()

    @rule(survival=survivals)
    def lose_power(self, survival: Survival) -> None:
        self.disk.lose_power(survival)
        self.reopen()

    @rule()
    def die(self) -> None:
        self.disk.kill()
        self.reopen()
        assert self.harness.log.log_end_offset == self.end_offset

    @rule(survival=survivals)
    def fail_a_sync(self, survival: Survival) -> None:
        """The log goes offline, promises nothing more, and the machine is switched off."""
        job = self.harness.log.flush_job()
        if job is None:
            return
        self.disk.faults.fail_next(DiskCall.SYNC if job.handles else DiskCall.SYNC_DIR)
        job.run()
        if job.error is None:  # nothing of the kind was in the job
            self.disk.faults.forget()
            self.durable_offset = self.harness.log.on_flushed(job)
            return
        with pytest.raises(BrokerError):
            self.harness.log.on_flushed(job)
        assert self.harness.log.durable_end_offset == self.durable_offset
        self.disk.lose_power(survival)
        self.reopen()

    @rule(data=st.data())
    def truncate(self, data: st.DataObject) -> None:
        if self.batches:
            offset = data.draw(st.sampled_from([base for base, _ in self.batches]))
            self.recovery_point = min(self.recovery_point or 0, offset)
            self.forget_from(offset)
            self.harness.log.truncate_to(offset)

    def reopen(self) -> None:
        self.harness.open(recovery_point=self.recovery_point)
        assert self.harness.log.log_end_offset >= self.durable_offset, "a promise was broken"
        self.forget_from(self.harness.log.log_end_offset)
        self.durable_offset = self.harness.log.durable_end_offset
        assert self.harness.log.latest_epoch <= self.epoch

    def forget_from(self, offset: int) -> None:
        self.batches = [batch for batch in self.batches if batch[0] < offset]
        self.end_offset = offset
        self.durable_offset = min(self.durable_offset, offset)

    @invariant()
    def the_log_holds_what_the_list_holds(self) -> None:
        assert not self.harness.log.holes
        assert self.harness.log.log_end_offset == self.end_offset
        expected = [value for _, batch in self.batches for value in batch]
        assert self.harness.values() == expected


TestLogOnAFailingDisk = FailingDiskMachine.TestCase
TestLogOnAFailingDisk.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)


class LongFailingDiskMachine(FailingDiskMachine):
    pass


TestLogOnAFailingDiskForLong = pytest.mark.slow(LongFailingDiskMachine.TestCase)
TestLogOnAFailingDiskForLong.settings = settings(max_examples=1500, stateful_step_count=60, deadline=None)


@pytest.mark.parametrize("seed", range(40))
def test_a_flipped_bit_that_the_scrubber_finds_is_never_served_and_never_cut(seed: int) -> None:
    disk = SimDisk(seed)
    harness = LogHarness(disk, CONFIG)
    for value in numbered(30):
        harness.append(value)
    durable = harness.flush()
    base = disk.random.choice(harness.log.segment_bases[:-1])
    path = f"{DIRECTORY}/{base:020d}.log"
    stored = disk.read_small(path)
    size_bytes, batch_bytes = len(stored), parse_header(stored).size_bytes
    # No checksum covers a batch's offset and leader epoch, in front of its magic byte: Kafka's format.
    covered = [position for position in range(size_bytes) if position % batch_bytes >= MAGIC_POSITION]
    disk.flip_bit(path, disk.random.choice(covered))
    job = harness.log.verify_job(base)
    assert job is not None
    job.run()
    assert harness.log.on_verified(job) is LogState.DAMAGED
    harness.log.close()
    log = harness.open(recovery_point=durable)
    assert log.log_end_offset == durable
    assert len(disk.read_small(path)) == size_bytes
    (hole,) = log.holes
    with pytest.raises(BrokerError):
        harness.values(hole.start_offset)
    assert harness.values(hole.end_offset) == list(numbered(30)[hole.end_offset :])


def test_a_restart_after_a_failed_sync_promises_nothing_that_the_disk_lost() -> None:
    disk = SimDisk()
    harness = LogHarness(disk)
    harness.append(b"kept")
    harness.flush()
    harness.append(b"lost")
    disk.faults.fail_next(DiskCall.SYNC)
    with pytest.raises(BrokerError):
        harness.flush()
    disk.kill()
    promised = harness.open(recovery_point=1).durable_end_offset
    disk.lose_power(KeepSynced())
    assert harness.open(recovery_point=1).log_end_offset >= promised
