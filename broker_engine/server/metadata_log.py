"""The metadata log on disk: `__cluster_metadata-0`, record batch v2, one batch per change, everything fsynced.

A partition log like any other, but never deleted from, and read back whole at start. Losing the middle of it would
delete topics: damage below what was durable once stops the node, while a torn tail, of which nobody was told, is cut.
How far it was durable stands in a checkpoint of its own. Blocking calls are marked: in a thread.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from uuid import UUID

from broker_engine.clock import Clock
from broker_engine.errors import BrokerError, ErrorCode
from broker_engine.log.config import FOREVER, LogConfig
from broker_engine.log.files import Files
from broker_engine.log.partition_log import LogState, PartitionLog
from broker_engine.metadata.records import Record, decode_record
from broker_engine.names import CLUSTER_METADATA, ROOT, Name, directory
from broker_engine.quorum.ready import Entry
from broker_engine.records.batch import BatchHeader, decode_records, iter_batches, parse_header
from broker_engine.records.builder import NewRecord, build_batch
from broker_engine.server.checkpoints import read_checkpoint, write_checkpoint

_PARTITION = (Name(ROOT, CLUSTER_METADATA), 0)
DIRECTORY = directory(*_PARTITION)
RECOVERY_POINT = "metadata-recovery-point-checkpoint"
_RECOVERY_POINT_INTERVAL_MS = 10_000
"""Each one costs an fsync, so not every change writes it."""
METADATA_TOPIC_ID = UUID(int=1)
"""Kafka's id of `__cluster_metadata`."""
_READ_BYTES = 1024 * 1024
_BATCH_BYTES_MAX = 1 << 30


@dataclass(frozen=True, slots=True)
class StoredBatch:
    header: BatchHeader
    records: tuple[Record, ...]
    """Empty for a control batch."""


class MetadataLog:
    def __init__(self, log: PartitionLog, files: Files, clock: Clock) -> None:
        self._log = log
        self._files = files
        self._clock = clock
        self._point_due_ms = clock.monotonic_ms()

    @classmethod
    def open(cls, files: Files, clock: Clock) -> MetadataLog:
        """Blocks. BrokerError where something that was durable once is gone."""
        point = read_checkpoint(files, RECOVERY_POINT).get(_PARTITION)
        config = LogConfig(retention_ms=FOREVER, retention_bytes=FOREVER, is_deleting=False)
        log = PartitionLog.open(files, DIRECTORY, config, clock, topic_id=METADATA_TOPIC_ID, recovery_point=point)
        if log.state is LogState.DAMAGED or log.log_end_offset < (point or 0):
            end_offset = log.log_end_offset
            log.close()
            raise BrokerError(
                ErrorCode.KAFKA_STORAGE_ERROR,
                f"{DIRECTORY} is damaged: it was durable up to offset {point}, and not all of that can be read "
                f"(it ends at {end_offset}): restore the data directory from a copy",
            )
        return cls(log, files, clock)

    @property
    def end_offset(self) -> int:
        return self._log.log_end_offset

    @property
    def latest_epoch(self) -> int:
        return self._log.latest_epoch

    def batches(self) -> Iterator[StoredBatch]:
        """Blocks. Every batch from the first on; UnknownRecordError where one cannot be understood."""
        offset = self._log.log_start_offset
        while offset < self.end_offset:
            for batch in self._read_from(offset):
                header = parse_header(batch)
                offset = header.next_offset
                yield StoredBatch(header, () if header.is_control else _decode(batch))

    def _read_from(self, offset: int) -> Iterator[memoryview]:
        read = self._log.read(offset, max_bytes=_READ_BYTES, end_offset=self.end_offset, at_least_one=True)
        data = b"".join(file_range.read() for file_range in read.ranges)
        read.release()
        if not data:
            raise BrokerError(ErrorCode.KAFKA_STORAGE_ERROR, f"the metadata log cannot be read at offset {offset}")
        return iter_batches(data)

    def append(self, entry: Entry) -> None:
        """One change as one batch, in the page cache."""
        now_ms = self._clock.now_ms()
        records = [NewRecord(now_ms, entry.control_key, value) for value in entry.values]
        batch = build_batch(records, is_control=entry.is_control)
        header = parse_header(batch)
        result = self._log.append(memoryview(batch), header, leader_epoch=entry.epoch, log_append_time_ms=None)
        assert result.base_offset == entry.base_offset, "the log and the quorum core count alike"

    def sync(self) -> int:
        """Blocks until everything appended is on disk; the durable end offset. BrokerError: the disk failed, for
        good.
        """
        job = self._log.flush_job()
        if job is not None:
            job.run()
            self._log.on_flushed(job)
            if self._clock.monotonic_ms() >= self._point_due_ms:
                self._save_point()
        return self._log.durable_end_offset

    def close(self) -> None:
        """Blocks. After a disk error there is nothing to promise, so no point is written."""
        if self._log.state is LogState.ONLINE:
            self._save_point()
        self._log.close()

    def _save_point(self) -> None:
        write_checkpoint(self._files, RECOVERY_POINT, {_PARTITION: self._log.durable_end_offset})
        self._point_due_ms = self._clock.monotonic_ms() + _RECOVERY_POINT_INTERVAL_MS


def _decode(batch: memoryview) -> tuple[Record, ...]:
    records = decode_records(batch, max_bytes=_BATCH_BYTES_MAX)
    return tuple(decode_record(record.value or b"") for record in records)
