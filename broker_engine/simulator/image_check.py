"""Boots a log on a disk as a crash left it, and holds what it says against what it may say.

By the numbers of the reliability text: 2 a prefix of what was appended, with everything that was promised; 3 a crash is
never taken for damage; 4 epochs are those of the batches; 5 caches change no answer; 8 no half rename, no lost name.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

from broker_engine.clock import Clock
from broker_engine.log.config import LogConfig
from broker_engine.log.file_seam import Files
from broker_engine.log.partition_log import PartitionLog
from broker_engine.log.results import LogState
from broker_engine.log.timestamps import TimestampOffset
from broker_engine.partition.producers import ProducerStates
from broker_engine.records.batch import iter_batches
from broker_engine.records.builder import NewRecord, build_batch
from broker_engine.records.decode import Record, decode_records
from broker_engine.records.header import BatchHeader, parse_header
from broker_engine.simulator.expectation import Expectation, StoredBatch
from broker_engine.simulator.sim_disk import SimDisk
from broker_engine.simulator.survival import KeepAll, KeepSynced
from broker_engine.simulator.workload import DECODED_BYTES_MAX, DIRECTORY, core_of, open_log, read_bytes

Boot = Callable[[Files, LogConfig, Clock], PartitionLog]
CACHE_SUFFIXES = (".index", ".timeindex", ".txnindex", ".snapshot", "leader-epoch-checkpoint")
_LEFTOVER_SUFFIXES = (".tmp", ".deleted", ".cleaned", ".swap")
_TIME_PROBES = 6
_ALL_BYTES = 1 << 30


class Violation(NamedTuple):
    invariant: int
    text: str


class _Broken(Exception):  # noqa: N818 (a finding, not an error of ours)
    def __init__(self, invariant: int, text: str) -> None:
        super().__init__(text)
        self.violation = Violation(invariant, text)


def _require(is_so: bool, invariant: int, text: str) -> None:
    if not is_so:
        raise _Broken(invariant, text)


@dataclass(frozen=True, slots=True)
class ImageChecker:
    config: LogConfig
    clock: Clock
    boot: Boot = open_log

    def check(self, image: SimDisk, expected: Expectation, *, is_thorough: bool) -> Violation | None:
        """The first thing that is wrong. Thorough: also without caches, and after a second crash."""
        try:
            self._check(image, expected, is_thorough=is_thorough)
        except _Broken as broken:
            return broken.violation
        except Exception as error:  # whatever a boot or an answer dies of is a finding
            return Violation(2, f"{type(error).__name__}: {error}")
        return None

    def _check(self, image: SimDisk, expected: Expectation, *, is_thorough: bool) -> None:
        without_caches = _without_caches(image) if is_thorough else None
        log = self.boot(image, self.config, self.clock)
        self._check_content(log, expected, expected.durable_offset)
        leftovers = [name for name in image.list_dir(DIRECTORY) if name.endswith(_LEFTOVER_SUFFIXES)]
        _require(not leftovers, 8, f"left over: {leftovers}")
        if without_caches is None:
            return
        self._check_answers(log, expected)
        bare_log = self.boot(without_caches, self.config, self.clock)
        self._check_content(bare_log, expected, expected.durable_offset)
        self._check_answers(bare_log, expected)
        _require(
            (bare_log.log_start_offset, bare_log.log_end_offset) == (log.log_start_offset, log.log_end_offset),
            5,
            "without caches the log has another start or end",
        )
        self._check_second_crash(image, log, expected)

    # --- 2, 3: what is in the log

    def _check_content(self, log: PartitionLog, expected: Expectation, durable_offset: int) -> None:
        _require(log.state is LogState.ONLINE, 3, f"the log is {log.state}: {log.holes}")
        start, end = log.log_start_offset, log.log_end_offset
        _require(end >= durable_offset, 2, f"ends at {end}, but {durable_offset} was promised")
        _require(start <= expected.start_offset_max, 2, f"starts at {start}, above {expected.start_offset_max}")
        _require(
            end in {0, start} or (bool(expected.batches) and (end in expected.bases or end == _end_of(expected))),
            2,
            f"ends at {end}, in the middle of a batch",
        )
        if self.config.is_compacting:
            self._check_compacted(log, expected)
        else:
            self._check_bytes(log, expected)

    def _check_bytes(self, log: PartitionLog, expected: Expectation) -> None:
        offset = log.log_start_offset
        while offset < log.log_end_offset:
            found = read_bytes(log, offset, _ALL_BYTES)
            first = max(0, bisect_left(expected.bases, offset + 1) - 1)
            position = 0
            while position < len(found):
                _require(first < len(expected.batches), 2, f"bytes behind the last batch at {offset}")
                wanted = expected.batches[first]
                data = found[position : position + len(wanted.data)]
                _require(data == wanted.data, 2, f"other bytes than were appended at {wanted.header.base_offset}")
                position += len(data)
                offset = wanted.header.next_offset
                first += 1
            _require(position > 0, 2, f"nothing to read at {offset}, though the log ends at {log.log_end_offset}")

    def _check_compacted(self, log: PartitionLog, expected: Expectation) -> None:
        """No record that was not appended there; of each key the last one, however an open transaction ends."""
        appended = [batch for batch in expected.batches if batch.header.base_offset < log.log_end_offset]
        by_offset = {record.offset: record for batch in appended for record in batch.records}
        found = {record.offset: record for batch in _stored_batches(log) for record in batch}
        for offset, record in found.items():
            _require(by_offset.get(offset) == record, 2, f"another record than was appended at {offset}")
        for offset in _last_of_each_key(appended) + _last_of_each_key(_ended(appended)):
            _require(offset in found, 7, f"the last record of its key, at {offset}, is gone")

    # --- 4, 5: what the log answers

    def _check_answers(self, log: PartitionLog, expected: Expectation) -> None:
        batches = self._present(log, expected)
        if not batches:
            return
        for batch in batches:
            header = batch.header
            first_offset = _first_offset(log, max(header.last_offset, log.log_start_offset))
            _require(first_offset == header.base_offset, 5, f"a read at {header.last_offset} begins at {first_offset}")
        self._check_epochs(log, [batch.header for batch in batches])
        self._check_times(log, batches)
        self._check_aborted(log, batches, expected)
        self._check_producers(log, batches, expected)

    def _present(self, log: PartitionLog, expected: Expectation) -> list[StoredBatch]:
        """Batches of which anything can be read. After a compaction only those that are still as they were."""
        first = max(0, bisect_left(expected.bases, log.log_start_offset + 1) - 1)
        batches = [batch for batch in expected.batches[first:] if batch.header.next_offset <= log.log_end_offset]
        if not self.config.is_compacting:
            return batches
        stored = {bytes(batch) for batch in _stored_bytes(log)}
        return [batch for batch in batches if batch.data in stored]

    def _check_epochs(self, log: PartitionLog, headers: list[BatchHeader]) -> None:
        for header in headers:
            epoch, wanted = log.epoch_of(max(header.base_offset, log.log_start_offset)), header.partition_leader_epoch
            _require(epoch == wanted, 4, f"offset {header.base_offset} is of epoch {wanted}, the log says {epoch}")

    def _check_times(self, log: PartitionLog, batches: list[StoredBatch]) -> None:
        if self.config.is_compacting:
            return
        records = [record for batch in batches for record in batch.records if record.offset >= log.log_start_offset]
        if not records:
            return
        highest = max(record.timestamp for record in records)
        step = max(1, len(records) // _TIME_PROBES)
        for timestamp in [highest + 1, highest, *(record.timestamp for record in records[::step])]:
            found = log.find_by_timestamp(timestamp, log.log_end_offset)
            wanted = next((record.offset for record in records if record.timestamp >= timestamp), None)
            _require(_offset(found) == wanted, 5, f"time {timestamp}: offset {_offset(found)}, should be {wanted}")
        latest = log.max_timestamp_offset()
        _require(latest is not None and latest.timestamp == highest, 5, f"highest time {latest}, should be {highest}")

    def _check_aborted(self, log: PartitionLog, batches: list[StoredBatch], expected: Expectation) -> None:
        """Not the entries but what they mean: those of transactions whose start is gone begin later, or are gone."""
        ended = expected.between(0, log.log_end_offset)
        wanted = [batch.aborted for batch in ended if batch.aborted is not None]
        found = log.aborted_transactions(log.log_start_offset, log.log_end_offset)
        for header in (batch.header for batch in batches):
            if header.is_transactional and not header.is_control and header.last_offset >= log.log_start_offset:
                marks = [
                    any(
                        each.producer_id == header.producer_id
                        and each.first_offset <= header.base_offset < each.last_offset
                        for each in entries
                    )
                    for entries in (wanted, found)
                ]
                _require(marks[0] == marks[1], 5, f"aborted at {header.base_offset}: {marks[1]}, should be {marks[0]}")

    def _check_producers(self, log: PartitionLog, batches: list[StoredBatch], expected: Expectation) -> None:
        found = core_of(log, self.clock.now_ms()).producers
        wanted = ProducerStates()
        for batch in expected.between(0, log.log_end_offset):
            wanted.record(batch.header, batch.header.base_offset, self.clock.now_ms(), batch.marker)
        for producer_id in sorted({batch.header.producer_id for batch in batches if batch.header.base_sequence >= 0}):
            is_sequence, should_be = (states.find(producer_id) for states in (found, wanted))
            assert should_be is not None
            sequence = is_sequence.last_sequence if is_sequence else None
            _require(
                sequence == should_be.last_sequence,
                5,
                f"producer {producer_id}: {sequence}, should be {should_be.last_sequence}",
            )

    # --- what recovery promised itself

    def _check_second_crash(self, image: SimDisk, log: PartitionLog, expected: Expectation) -> None:
        """What the recovered log says is durable must be; and so must what it takes and flushes from now on."""
        again = self.boot(image.image(KeepSynced()), self.config, self.clock)
        self._check_content(again, expected, log.durable_end_offset)
        batch = build_batch([NewRecord(self.clock.now_ms(), b"after", b"the crash")])
        epoch = max(0, log.latest_epoch)
        log.append(memoryview(batch), parse_header(batch), leader_epoch=epoch, log_append_time_ms=None)
        job = log.flush_job()
        assert job is not None
        job.run()
        durable_offset = log.on_flushed(job)
        last = self.boot(image.image(KeepSynced()), self.config, self.clock)
        _require(last.log_end_offset == durable_offset, 2, f"flushed after recovery to {durable_offset}, then lost")


def _without_caches(image: SimDisk) -> SimDisk:
    bare = image.image(KeepAll())
    for name in bare.list_dir(DIRECTORY) if bare.exists(DIRECTORY) else ():
        if name.endswith(CACHE_SUFFIXES):
            bare.unlink(f"{DIRECTORY}/{name}")
    return bare


def _first_offset(log: PartitionLog, offset: int) -> int:
    read = log.read(offset, max_bytes=1, end_offset=log.log_end_offset, at_least_one=True)
    read.release()
    return read.first_offset


def _stored_bytes(log: PartitionLog) -> Iterator[memoryview]:
    offset = log.log_start_offset
    while offset < log.log_end_offset:
        batches = list(iter_batches(read_bytes(log, offset, _ALL_BYTES)))
        if not batches:
            return
        yield from batches
        offset = parse_header(batches[-1]).next_offset


def _stored_batches(log: PartitionLog) -> Iterator[list[Record]]:
    for batch in _stored_bytes(log):
        yield decode_records(batch, max_bytes=DECODED_BYTES_MAX)


def _ended(batches: list[StoredBatch]) -> list[StoredBatch]:
    """Without those of transactions that have no marker yet."""
    markers = {batch.header.producer_id: batch.header.base_offset for batch in batches if batch.marker is not None}
    return [
        batch
        for batch in batches
        if not batch.header.is_transactional or batch.header.base_offset <= markers.get(batch.header.producer_id, -1)
    ]


def _last_of_each_key(batches: list[StoredBatch]) -> list[int]:
    """Offsets of records that no compaction may remove: not of tombstones, markers, aborted transactions."""
    aborted = [batch.aborted for batch in batches if batch.aborted is not None]
    last: dict[bytes | None, Record] = {}
    for batch in batches:
        header = batch.header
        is_aborted = any(
            each.producer_id == header.producer_id and each.first_offset <= header.base_offset < each.last_offset
            for each in aborted
        )
        if not header.is_control and not (header.is_transactional and is_aborted):
            last |= {record.key: record for record in batch.records}
    return [record.offset for record in last.values() if record.value is not None]


def _end_of(expected: Expectation) -> int:
    return expected.batches[-1].header.next_offset


def _offset(found: TimestampOffset | None) -> int | None:
    return found.offset if found else None
