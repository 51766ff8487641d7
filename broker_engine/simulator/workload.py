"""A log's life in a few hundred steps, drawn from a seed: what a broker does to one partition, and the expectation.

Appends of several codecs, idempotent and transactional producers, aborts, new leader epochs, flushes, checkpoints,
rolls, retention, deletions of records, truncations, restarts; with a compacted topic, compactions.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from uuid import UUID

from broker_engine.clock import Clock
from broker_engine.log.config import LogConfig
from broker_engine.log.file_seam import Files
from broker_engine.log.flush import FlushJob
from broker_engine.log.partition_log import PartitionLog
from broker_engine.log.txn_index import AbortedTransaction
from broker_engine.names import Name
from broker_engine.partition.core import PartitionCore
from broker_engine.records.builder import NewRecord, build_batch
from broker_engine.records.control import TxnMarker, marker_record
from broker_engine.records.decode import decode_records
from broker_engine.records.header import parse_header
from broker_engine.server.checkpoints import LOG_STARTS, RECOVERY_POINTS, read_checkpoint, write_checkpoint
from broker_engine.simulator.expectation import (
    Appending,
    Cutting,
    Flushed,
    StartMayRise,
    StoredBatch,
    Timeline,
    WasCut,
)

TOPIC_ID = UUID("5c1e9f6a-3b1d-4c7e-9a50-7d1b5b2f0c11")
DIRECTORY = "tenants/demo/orders-0"
PARTITION = (Name("demo", "orders"), 0)
START_MS = 1_700_000_000_000
DECODED_BYTES_MAX = 1 << 24
DELETING = LogConfig(segment_bytes=16 << 10, index_interval_bytes=1024, retention_ms=20_000, retention_bytes=48 << 10)
COMPACTING = LogConfig(
    segment_bytes=8 << 10,
    index_interval_bytes=1024,
    is_deleting=False,
    is_compacting=True,
    min_cleanable_dirty_ratio=0.3,
    delete_retention_ms=2_000,
)
_KEY_COUNT = 12
_TRANSACTIONAL_ID = 900


class SteppedClock:
    """Goes on when told to."""

    def __init__(self, time_ms: int = START_MS) -> None:
        self.time_ms = time_ms

    def now_ms(self) -> int:
        return self.time_ms

    def monotonic_ms(self) -> int:
        return self.time_ms


def open_log(files: Files, config: LogConfig, clock: Clock) -> PartitionLog:
    """As a broker starts: with what its checkpoints say."""
    return PartitionLog.open(
        files,
        DIRECTORY,
        config,
        clock,
        topic_id=TOPIC_ID,
        recovery_point=read_checkpoint(files, RECOVERY_POINTS).get(PARTITION),
        log_start_offset=read_checkpoint(files, LOG_STARTS).get(PARTITION, 0),
    )


def core_of(log: PartitionLog, now_ms: int) -> PartitionCore:
    """A leader that knows of its producers what the log's snapshots and batches tell."""
    core = PartitionCore(
        leader_epoch=max(0, log.latest_epoch),
        replicas=(1,),
        isr=(1,),
        log_start_offset=log.log_start_offset,
        log_end_offset=log.log_end_offset,
        durable_end_offset=log.durable_end_offset,
    )
    core.restore(log.producer_snapshots(), log.iter_batches, now_ms)
    return core


class Workload:
    def __init__(
        self, files: Files, config: LogConfig, *, seed: int, operation_count: Callable[[], int] = lambda: 0
    ) -> None:
        self.timeline = Timeline()
        self.clock = SteppedClock()
        self.leader_epoch = 0
        self._files = files
        self._config = config
        self._operation_count = operation_count
        self._random = Random(seed)  # noqa: S311 (a workload, nothing secret)
        self._number = 0
        self._open()

    def run(self, step_count: int) -> None:
        for _ in range(step_count):
            self.clock.time_ms += self._random.randint(0, 400)
            steps, weights = zip(*self._steps(), strict=True)
            self._random.choices(steps, weights)[0]()
        self.flush()

    def _steps(self) -> list[tuple[Callable[[], object], int]]:
        common: list[tuple[Callable[[], object], int]] = [
            (self.append, 140),
            (self.end_transaction, 14),
            (self.flush, 30),
            (self.checkpoint, 6),
            (self.log_roll, 3),
            (self.restart, 2),
        ]
        if self._config.is_compacting:
            return [*common, (self.compact, 6)]
        return [*common, (self.retain, 6), (self.delete_records, 3), (self.truncate, 2)]

    # --- writing

    def append(self) -> None:
        random = self._random
        if random.random() < 0.05:
            self.leader_epoch += 1
        producer_id = random.choice([-1, -1, 1, 2, _TRANSACTIONAL_ID])
        producer = self.core.producers.find(producer_id)
        batch = build_batch(
            [self._record() for _ in range(random.choice([1, 1, 1, 2, 5]))],
            codec=random.randrange(5),
            producer_id=producer_id,
            producer_epoch=-1 if producer_id < 0 else 0,
            base_sequence=-1 if producer_id < 0 else producer.next_sequence if producer else 0,
            is_transactional=producer_id == _TRANSACTIONAL_ID,
        )
        self._append(batch, None)

    def _record(self) -> NewRecord:
        random = self._random
        self._number += 1
        size_bytes = random.choice([0, 20, 20, 100, 100, 300, 300, 900, 5000] if random.random() < 0.5 else [40])
        value = b"%d-" % self._number + random.randbytes(size_bytes)
        is_tombstone = self._config.is_compacting and random.random() < 0.1
        key = b"key-%d" % random.randrange(_KEY_COUNT)
        return NewRecord(self.clock.now_ms() - random.randint(0, 300), key, None if is_tombstone else value)

    def end_transaction(self) -> None:
        if self.core.producers.transactions.first_offset_of(_TRANSACTIONAL_ID) is None:
            return
        marker = TxnMarker(is_commit=self._random.random() < 0.4, coordinator_epoch=3)
        record = NewRecord(self.clock.now_ms(), *marker_record(marker))
        batch = build_batch(
            [record], producer_id=_TRANSACTIONAL_ID, producer_epoch=0, is_transactional=True, is_control=True
        )
        self._append(batch, marker)

    def _append(self, batch: bytes, marker: TxnMarker | None) -> None:
        before, log = self._operation_count(), self.log
        header = parse_header(batch)
        log.append(memoryview(batch), header, leader_epoch=self.leader_epoch, log_append_time_ms=None)
        stored = header._replace(
            base_offset=log.log_end_offset - header.record_count, partition_leader_epoch=self.leader_epoch
        )
        ended = self.core.producers.record(stored, stored.base_offset, self.clock.now_ms(), marker)
        aborted = AbortedTransaction.of(ended) if ended and ended.is_aborted else None
        data = read_bytes(log, stored.base_offset, stored.size_bytes)
        records = tuple(decode_records(data, max_bytes=DECODED_BYTES_MAX))
        self.timeline.note(before, Appending(StoredBatch(stored, data, records, marker, aborted)))
        if aborted is not None:
            log.note_aborted(aborted)

    # --- promises

    def flush(self) -> None:
        job, stable_offset = self.log.flush_job(), self._stable_offset()
        if job is not None:
            self._sync(job)
            self._note_durable(self.log.on_flushed(job))
            self._cleanable_offset = stable_offset

    def _sync(self, job: FlushJob) -> None:
        job.run()

    def _stable_offset(self) -> int:
        """Below it every transaction has ended."""
        open_offset = self.core.producers.transactions.first_offset
        return self.log.log_end_offset if open_offset is None else open_offset

    def _note_durable(self, offset: int) -> None:
        self.timeline.note(self._operation_count(), Flushed(offset))

    def checkpoint(self, *, offset_max: int | None = None) -> None:
        point = self.log.recovery_point
        point = point if offset_max is None else min(point, offset_max)
        write_checkpoint(self._files, RECOVERY_POINTS, [(PARTITION, point)])
        write_checkpoint(self._files, LOG_STARTS, [(PARTITION, self.log.log_start_offset)])

    # --- upkeep

    def log_roll(self) -> None:
        self.log.roll()

    def retain(self) -> None:
        before = self._operation_count()
        deleted = self.log.apply_retention(self.clock.now_ms(), high_watermark=self.log.durable_end_offset)
        self.timeline.note(before, StartMayRise(self.log.log_start_offset))
        for segment in deleted:
            segment.remove()

    def delete_records(self) -> None:
        before, log = self._operation_count(), self.log
        offset = self._random.randint(log.log_start_offset, max(log.log_start_offset, log.durable_end_offset))
        deleted = log.delete_records_before(offset)
        self.timeline.note(before, StartMayRise(log.log_start_offset))
        for segment in deleted:
            segment.remove()

    def truncate(self) -> None:
        """As a follower does. Its recovery point comes down first: what lies above it is then not yet durable."""
        log, batches = self.log, self._present_batches()
        if not batches:
            return
        offset = self._random.choice(batches[-6:]).header.base_offset
        self.checkpoint(offset_max=offset)
        self.timeline.note(self._operation_count(), Cutting(offset))
        log.truncate_to(offset)
        self.timeline.note(self._operation_count(), WasCut(offset))
        self._lead()

    def _present_batches(self) -> list[StoredBatch]:
        expectation = self.timeline.advance_to(self._operation_count())
        return expectation.between(self.log.log_start_offset, self.log.log_end_offset)

    def compact(self) -> None:
        log = self.log
        job = log.compaction_job(
            limit_offset=min(self._cleanable_offset, self._stable_offset(), log.durable_end_offset),
            last_batches=self.core.producers.last_batches,
            now_ms=self.clock.now_ms(),
        )
        if job is None:
            return
        job.prepare()
        for cleaning in job.cleanings():
            cleaning.clean()
            deleted = log.swap_in(cleaning)
            if deleted is None:
                cleaning.discard()
                continue
            cleaning.finish()
            log.settle(cleaning)
            for segment in deleted:
                segment.remove()
        log.end_compaction(job)
        assert not job.problem, job.problem

    def restart(self) -> None:
        """A clean stop, or one without a flush."""
        if self._random.random() < 0.5:
            self.flush()
            self.log.close()
            self.checkpoint()
        else:
            self.log.close()
        self._open()

    def _open(self) -> None:
        self.log = open_log(self._files, self._config, self.clock)
        self._note_durable(self.log.durable_end_offset)
        self._lead()

    def _lead(self) -> None:
        self.core = core_of(self.log, self.clock.now_ms())
        self.log.pack_producers = self.core.pack_producers
        self._cleanable_offset = 0  # until a flush has brought all markers to the disk


def read_bytes(log: PartitionLog, offset: int, size_bytes: int) -> bytes:
    """Stored bytes from the batch that holds `offset`, at most so many of them."""
    read = log.read(offset, max_bytes=size_bytes, end_offset=log.log_end_offset, at_least_one=True)
    try:
        return b"".join(file_range.read() for file_range in read.ranges)
    finally:
        read.release()
