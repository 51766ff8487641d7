"""Snapshot files: taken at roll and at close, the newest sound one is enough, and none is ever needed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from broker_engine.errors import BrokerError
from broker_engine.log.config import LogConfig
from broker_engine.log.files import DiskFiles, Files, MemoryFiles
from broker_engine.log.segment import SNAPSHOT_SUFFIX
from broker_engine.partition.core import PartitionCore
from broker_engine.records.batch import BatchHeader, parse_header
from broker_engine.records.builder import NewRecord, build_batch
from broker_engine.records.control import TxnMarker
from tests.broker_engine.log.harness import DIRECTORY, LogHarness
from tests.broker_engine.log.kafka_tools import dump_log, need_kafka_tools

CONFIG = LogConfig(segment_bytes=1000)


class Leader:
    """A log and its core, wired as the broker wires them. Three producers take turns."""

    def __init__(self, files: Files) -> None:
        self.harness = LogHarness(files, CONFIG)
        self.next_sequence = dict.fromkeys((1, 2, 3), 0)
        self.sent: list[BatchHeader] = []
        self.replayed: list[BatchHeader] = []
        self.start()

    @property
    def log_end_offset(self) -> int:
        return self.harness.log.log_end_offset

    def start(self) -> int:
        """Answers where the replay of batches began."""
        log = self.harness.log
        end_offset = log.log_end_offset
        self.core = PartitionCore(
            leader_epoch=0,
            replicas=(1,),
            isr=(1,),
            log_start_offset=log.log_start_offset,
            log_end_offset=end_offset,
            durable_end_offset=end_offset,
        )
        self.replayed = []
        start_offset = self.core.restore(log.producer_snapshots(), self._noted, self.harness.clock.now_ms())
        log.pack_producers = self.core.pack_producers
        return start_offset

    def _noted(self, start_offset: int) -> Iterator[tuple[BatchHeader, TxnMarker | None]]:
        for header, marker in self.harness.log.iter_batches(start_offset):
            self.replayed.append(header)
            yield header, marker

    def restart(self, *, is_clean: bool) -> int:
        if is_clean:
            self.harness.log.close()
        self.harness.open()
        return self.start()

    def produce(self, batch_count: int) -> None:
        for number in range(batch_count):
            producer_id = number % 3 + 1
            batch = build_batch(
                [NewRecord(self.harness.clock.now_ms(), b"k", b"v" * 20)] * 2,
                producer_id=producer_id,
                producer_epoch=0,
                base_sequence=self.next_sequence[producer_id],
            )
            self.next_sequence[producer_id] += 2
            result = self.harness.append_batch(batch)
            header = parse_header(batch)
            self.core.on_appended(result, header, self.harness.clock.now_ms())
            self.sent.append(header)

    def answers(self) -> list[str]:
        """To a resend of every batch ever sent, and to what each producer sends next."""
        return [self._answer(header) for header in [*self.sent, *self._following()]]

    def _following(self) -> list[BatchHeader]:
        last = {header.producer_id: header for header in self.sent}
        return [header._replace(base_sequence=header.base_sequence + 2) for header in last.values()]

    def _answer(self, header: BatchHeader) -> str:
        try:
            return str(self.core.producers.check(header))
        except BrokerError as error:
            return f"{error.code.name}: {error.message}"


@pytest.fixture
def leader(files: Files) -> Leader:
    leader = Leader(files)
    leader.produce(30)
    assert leader.harness.log.segment_count > 2
    return leader


def snapshot_names(files: Files) -> list[str]:
    return [name for name in files.list_dir(DIRECTORY) if name.endswith(SNAPSHOT_SUFFIX)]


def test_after_a_clean_stop_no_batch_is_replayed(leader: Leader) -> None:
    before = leader.answers()
    assert leader.restart(is_clean=True) == leader.log_end_offset
    assert leader.replayed == []
    assert leader.answers() == before


def test_after_a_crash_only_batches_behind_the_last_roll_are_replayed(leader: Leader) -> None:
    before = leader.answers()
    start_offset = leader.restart(is_clean=False)
    assert 0 < start_offset <= leader.replayed[0].base_offset
    assert len(leader.replayed) < 10
    assert leader.answers() == before


def test_without_any_snapshot_the_answers_are_the_same(leader: Leader, files: Files) -> None:
    before = leader.answers()
    leader.harness.log.close()
    for name in snapshot_names(files):
        files.unlink(f"{DIRECTORY}/{name}")
    assert leader.restart(is_clean=False) == 0
    assert leader.answers() == before


def test_a_damaged_snapshot_gives_way_to_the_one_before_it(leader: Leader, files: Files) -> None:
    before = leader.answers()
    leader.harness.log.close()
    *_, earlier, newest = snapshot_names(files)
    files.write_atomic(f"{DIRECTORY}/{newest}", b"\x00\x01torn", is_durable=False)
    assert leader.restart(is_clean=False) == int(earlier.removesuffix(SNAPSHOT_SUFFIX))
    assert leader.answers() == before


def test_a_stop_in_the_middle_of_a_segment_leaves_one_snapshot_there_not_many(leader: Leader, files: Files) -> None:
    for _ in range(4):
        leader.restart(is_clean=True)
        leader.produce(1)
    leader.restart(is_clean=True)
    in_segments = {segment for segment in files.list_dir(DIRECTORY) if segment.endswith(".log")}
    assert len(snapshot_names(files)) <= len(in_segments)


def test_a_truncation_takes_the_snapshots_above_it_along(leader: Leader, files: Files) -> None:
    cut = leader.log_end_offset - 6
    leader.restart(is_clean=True)
    leader.harness.log.truncate_to(cut)
    assert all(int(name.removesuffix(SNAPSHOT_SUFFIX)) <= cut for name in snapshot_names(files))
    leader.start()
    resent = leader.sent[-3]
    assert leader.core.producers.check(resent) is None, "what was cut off may be sent again"


def test_a_power_failure_never_leaves_a_snapshot_of_what_is_lost() -> None:
    files = MemoryFiles()
    leader = Leader(files)
    leader.produce(4)
    leader.harness.flush()
    leader.produce(3)
    leader.harness.log.close()  # a snapshot at the end, of batches that no flush covered
    files.sync_dir(DIRECTORY)
    files.crash()
    leader.harness.open()
    assert leader.start() <= leader.log_end_offset == 8
    assert leader.core.producers.check(leader.sent[4]) is None


def test_a_full_disk_costs_the_snapshot_but_not_the_roll() -> None:
    files = MemoryFiles()
    leader = Leader(files)
    leader.produce(1)
    files.no_space = True
    leader.harness.log.close()
    assert snapshot_names(files) == []


@pytest.mark.kafka_peer
def test_kafkas_dump_log_reads_our_snapshot(tmp_path: Path) -> None:
    need_kafka_tools()
    leader = Leader(DiskFiles(tmp_path))
    leader.produce(9)
    leader.harness.log.close()
    said = dump_log([max((tmp_path / DIRECTORY).glob("*.snapshot"))])
    lines = [line for line in said.splitlines() if line.startswith("producerId: 3 ")]
    assert len(lines) == 3
    assert "firstSequence: 4 lastSequence: 5 lastOffset: 17 offsetDelta: 1" in lines[-1]
