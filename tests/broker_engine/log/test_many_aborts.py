"""However much was aborted, a fetch pays for what it reads: the work is counted in bytes and in comparisons."""

from __future__ import annotations

from broker_engine.log.compaction_filter import AbortedRanges
from broker_engine.log.config import LogConfig
from broker_engine.log.file_seam import FileHandle
from broker_engine.log.memory_files import MemoryFile, MemoryFiles
from broker_engine.log.segment import TXN_INDEX_SUFFIX
from broker_engine.log.txn_index import AbortedTransaction
from broker_engine.records.header import BatchHeader
from tests.broker_engine.log.harness import DIRECTORY
from tests.broker_engine.log.test_txn_index import TransactionalLog

ABORTS = 5_000
FETCH_BYTES_MAX = 10_000
"""A piece of the index, and a search for its place. All of it has 170,000."""


class CountedFile(MemoryFile):
    def pread(self, size_bytes: int, position: int) -> bytes:
        data = super().pread(size_bytes, position)
        assert isinstance(self._files, CountingFiles)
        self._files.read_bytes += len(data) if self in self._files.txn_indexes else 0
        return data


class CountingFiles(MemoryFiles):
    """Counts what is read of transaction indexes."""

    def __init__(self) -> None:
        super().__init__()
        self.read_bytes = 0
        self.txn_indexes: list[FileHandle] = []

    def open(self, path: str, *, create: bool = False) -> FileHandle:
        super().open(path, create=create)
        handle = CountedFile(self, self._files[path])
        if TXN_INDEX_SUFFIX in path:
            self.txn_indexes.append(handle)
        return handle

    def read_small(self, path: str) -> bytes:
        data = super().read_small(path)
        self.read_bytes += len(data) if TXN_INDEX_SUFFIX in path else 0
        return data


def entry(number: int) -> AbortedTransaction:
    return AbortedTransaction(1, 2 * number, 2 * number + 1, 2 * number + 2)


def log_with(files: CountingFiles, config: LogConfig) -> TransactionalLog:
    transactional = TransactionalLog(files)
    transactional.harness.config = transactional.log.config = config
    for _ in range(ABORTS):
        transactional.send(1)
        transactional.end(1, is_commit=False)
    transactional.harness.flush()
    files.read_bytes = 0
    return transactional


def test_a_fetch_reads_the_few_entries_that_it_needs() -> None:
    files = CountingFiles()
    transactional = log_with(files, LogConfig())
    assert transactional.log.segment_count == 1
    for start in (0, ABORTS, 2 * ABORTS - 4):
        found = transactional.log.aborted_transactions(start, start + 4)
        assert found == [entry(start // 2), entry(start // 2 + 1)]
    assert files.read_bytes < 3 * FETCH_BYTES_MAX


def test_a_new_abort_does_not_make_the_next_fetch_read_all_of_them_again() -> None:
    files = CountingFiles()
    transactional = log_with(files, LogConfig())
    for _ in range(10):
        transactional.send(1)
        transactional.end(1, is_commit=False)
        end_offset = transactional.log.log_end_offset
        read = transactional.log.read(end_offset - 2, max_bytes=1000, end_offset=end_offset, at_least_one=True)
        assert transactional.log.aborted_in(read, end_offset - 2, end_offset) == transactional.expected[-1:]
        read.release()
    assert files.read_bytes < 10 * FETCH_BYTES_MAX


def test_a_compaction_reads_the_indexes_in_its_thread() -> None:
    files = CountingFiles()
    config = LogConfig(segment_bytes=100_000, is_compacting=True, min_cleanable_dirty_ratio=0.0)
    transactional = log_with(files, config)
    log, now_ms = transactional.log, transactional.harness.clock.now_ms()
    job = log.compaction_job(limit_offset=log.log_end_offset, last_batches=lambda limit_offset: {}, now_ms=now_ms)
    assert job is not None
    assert files.read_bytes == 0
    job.prepare()
    assert files.read_bytes > 0
    log.end_compaction(job)


class CountedOffset(int):
    """Counts how often it is compared."""

    count = 0

    def __lt__(self, other: int) -> bool:
        CountedOffset.count += 1
        return int(self) < other

    def __ge__(self, other: int) -> bool:
        CountedOffset.count += 1
        return int(self) >= other


def batch_at(offset: int) -> BatchHeader:
    return BatchHeader(offset, 50, 0, 2, 0, 0x10, 0, 0, 0, 1, 0, 0, 1)


def test_compaction_asks_a_few_of_a_producers_transactions_whether_one_covers_a_batch() -> None:
    ranges = AbortedRanges()
    for number in range(ABORTS):
        ranges.note(AbortedTransaction(1, 10 * number, 10 * number + 5, 0))
    for number in range(ABORTS):
        is_covered = [ranges.covers(batch_at(10 * number + behind)) for behind in (0, 4, 5, 9)]
        assert is_covered == [True, True, False, False]
    assert ranges.covers(batch_at(CountedOffset(10 * ABORTS - 7)))
    assert CountedOffset.count < 30


def test_an_index_that_is_out_of_order_is_rebuilt() -> None:
    files = CountingFiles()
    transactional = TransactionalLog(files)
    transactional.play()
    end_offset = transactional.log.log_end_offset
    transactional.log.close()
    name = next(name for name in files.list_dir(DIRECTORY) if name.endswith(TXN_INDEX_SUFFIX))
    stored = files.read_small(f"{DIRECTORY}/{name}")
    files.write_atomic(f"{DIRECTORY}/{name}", stored + stored, is_durable=True)
    log = transactional.harness.open(recovery_point=end_offset)
    assert log.aborted_transactions(0, end_offset) == transactional.expected
