"""The transaction index: Kafka's own files, and the same rebuilt from the batches alone."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from broker_engine.errors import BrokerError
from broker_engine.log.config import LogConfig
from broker_engine.log.files import DiskFiles, Files, MemoryFiles
from broker_engine.log.partition_log import PartitionLog
from broker_engine.log.segment import TXN_INDEX_SUFFIX
from broker_engine.log.txn_index import AbortedTransaction, pack_entries, parse_entries
from broker_engine.records.builder import NewRecord, build_batch
from broker_engine.records.control import (
    EndedTransaction,
    OpenTransactions,
    TxnMarker,
    marker_batch,
    marker_record,
    read_marker,
)
from broker_engine.records.header import parse_header
from tests.broker_engine.log.harness import DIRECTORY, LogHarness
from tests.broker_engine.log.kafka_tools import dump_log, need_kafka_tools
from tests.broker_engine.log.test_golden_segments import GOLDEN, open_log

FOLDERS = sorted({path.parent.name for path in GOLDEN.glob("*/*.txnindex")})


@pytest.fixture(params=FOLDERS)
def folder(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    copy = tmp_path / request.param
    shutil.copytree(GOLDEN / request.param, copy)
    for path in (copy, *copy.iterdir()):
        path.chmod(0o755)
    return copy


def test_kafkas_index_comes_out_as_it_went_in(folder: Path) -> None:
    for path in folder.glob("*.txnindex"):
        entries = parse_entries(path.read_bytes())
        assert entries
        assert pack_entries(entries) == path.read_bytes()


def test_an_index_rebuilt_from_the_batches_has_kafkas_bytes(folder: Path) -> None:
    written_by_kafka = {path.name: path.read_bytes() for path in folder.glob("*.txnindex")}
    for path in folder.iterdir():
        if path.suffix in {".index", ".timeindex", ".txnindex", ".snapshot"}:
            path.unlink()
    open_log(folder).close()
    assert {path.name: path.read_bytes() for path in folder.glob("*.txnindex")} == written_by_kafka


def test_fetches_of_committed_records_learn_of_every_aborted_transaction_in_their_range(tmp_path: Path) -> None:
    copy = tmp_path / "golden-0"
    shutil.copytree(GOLDEN / "golden-0", copy)
    log = open_log(copy)
    first, second, third = (1, 41, 46), (2, 48, 50), (1, 57, 62)

    def aborted(start: int, end: int) -> list[tuple[int, int, int]]:
        return [entry[:3] for entry in log.aborted_transactions(start, end)]

    assert aborted(0, 66) == [first, second, third]
    assert aborted(0, 41) == []
    assert aborted(46, 48) == [first]
    assert aborted(47, 57) == [second]
    assert aborted(63, 66) == []


class TransactionalLog:
    """Appends transactional batches and markers, and notes what was aborted, as a broker does."""

    def __init__(self, files: Files) -> None:
        self.harness = LogHarness(files, LogConfig(segment_bytes=400))
        self.transactions = OpenTransactions()
        self.expected: list[AbortedTransaction] = []

    @property
    def log(self) -> PartitionLog:
        return self.harness.log

    def send(self, producer_id: int) -> None:
        self._append(
            build_batch(
                [NewRecord(1000, b"k", b"v" * 50)],
                producer_id=producer_id,
                producer_epoch=0,
                base_sequence=0,
                is_transactional=True,
            )
        )

    def end(self, producer_id: int, *, is_commit: bool) -> None:
        key, value = marker_record(TxnMarker(is_commit, 0))
        batch = build_batch(
            [NewRecord(1000, key, value)],
            producer_id=producer_id,
            producer_epoch=0,
            is_transactional=True,
            is_control=True,
        )
        ended = self._append(batch)
        if ended is not None and ended.is_aborted:
            self.expected.append(AbortedTransaction.of(ended))
            self.log.note_aborted(self.expected[-1])

    def _append(self, batch: bytes) -> EndedTransaction | None:
        header, offset = parse_header(batch), self.log.log_end_offset
        self.harness.append_batch(batch)
        return self.transactions.observe(header, offset, read_marker(batch) if header.is_control else None)

    def play(self) -> None:
        for round_number in range(6):
            self.send(1)
            self.send(2)
            self.send(1)
            self.end(2, is_commit=round_number % 2 == 0)
            self.end(1, is_commit=round_number % 3 == 0)
        self.harness.flush()
        assert self.log.segment_count > 4


@pytest.fixture
def transactional(files: Files) -> TransactionalLog:
    transactional = TransactionalLog(files)
    transactional.play()
    return transactional


def test_what_was_aborted_is_there_after_any_restart(transactional: TransactionalLog) -> None:
    end_offset = transactional.log.log_end_offset
    for recovery_point in (end_offset, end_offset // 2, None):
        transactional.log.close()
        log = transactional.harness.open(recovery_point=recovery_point)
        assert log.aborted_transactions(0, end_offset) == transactional.expected


def test_an_index_that_is_torn_or_gone_with_the_others_is_rebuilt(
    transactional: TransactionalLog, files: Files
) -> None:
    end_offset = transactional.log.log_end_offset
    transactional.log.close()
    names = [name for name in files.list_dir(DIRECTORY) if name.endswith(TXN_INDEX_SUFFIX)]
    files.write_atomic(f"{DIRECTORY}/{names[0]}", b"torn", is_durable=True)
    log = transactional.harness.open(recovery_point=end_offset)
    assert log.aborted_transactions(0, end_offset) == transactional.expected
    log.close()
    for name in files.list_dir(DIRECTORY):
        if name.endswith("index"):
            files.unlink(f"{DIRECTORY}/{name}")
    log = transactional.harness.open(recovery_point=end_offset)
    assert log.aborted_transactions(0, end_offset) == transactional.expected


def test_a_truncation_forgets_the_markers_that_it_cuts_off(transactional: TransactionalLog) -> None:
    cut = transactional.expected[-1].last_offset
    transactional.log.truncate_to(cut)
    assert transactional.log.aborted_transactions(0, cut) == transactional.expected[:-1]


@pytest.mark.kafka_peer
def test_kafkas_dump_log_reads_our_index(tmp_path: Path) -> None:
    need_kafka_tools()
    transactional = TransactionalLog(DiskFiles(tmp_path))
    transactional.play()
    said = dump_log(sorted((tmp_path / DIRECTORY).glob("*.txnindex")))
    for entry in transactional.expected:
        assert f"version: 0 producerId: {entry.producer_id} firstOffset: {entry.first_offset} " in said


ABORT = marker_batch(1, 0, TxnMarker(is_commit=False, coordinator_epoch=0), 1)


def harness_with_open_transaction(files: MemoryFiles) -> LogHarness:
    harness = LogHarness(files)
    identity = {"producer_id": 1, "producer_epoch": 0, "base_sequence": 0}
    harness.append_batch(build_batch([NewRecord(1, b"k", b"v")], is_transactional=True, **identity))
    return harness


def append_abort(harness: LogHarness) -> None:
    with harness.log.room_for_aborted(1):
        harness.append_batch(ABORT)
        harness.log.note_aborted(AbortedTransaction(1, 0, 1, 2))


def test_an_abort_marker_for_whose_entry_there_is_no_room_is_refused_and_comes_later() -> None:
    """A log that took the marker alone would have to go offline, or show aborted records as committed."""
    files = MemoryFiles()
    harness = harness_with_open_transaction(files)
    for free_bytes in range(len(ABORT) + len(pack_entries([AbortedTransaction(1, 0, 1, 2)]))):
        files.free_bytes = free_bytes
        with pytest.raises(BrokerError):
            append_abort(harness)
        files.no_space = False
        assert (harness.log.is_offline, harness.log.log_end_offset) == (False, 1)
    append_abort(harness)
    assert harness.log.aborted_transactions(0, 2) == [AbortedTransaction(1, 0, 1, 2)]


def test_room_that_a_crash_leaves_in_an_index_is_no_entry() -> None:
    files = MemoryFiles()
    harness = harness_with_open_transaction(files)
    append_abort(harness)
    harness.flush()
    index = harness.log._segments[-1].txn_index
    index.reserve(1)
    assert index.handle is not None
    index.handle.sync()
    files.crash()
    harness.open(recovery_point=2)
    assert harness.log.aborted_transactions(0, 2) == [AbortedTransaction(1, 0, 1, 2)]
