"""The metadata log on disk: `__cluster_metadata-0`, record batch v2, one batch per change, everything fsynced.

A partition log like any other, but never deleted from, other than below a snapshot, and read back whole at start.
Losing the middle of it would delete topics: damage below what was durable once stops the node, while a torn tail, of
which nobody was told, is cut. How far it was durable stands in a checkpoint of its own. Blocking calls are marked: in a
thread.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from uuid import UUID

from broker_engine.clock import Clock
from broker_engine.errors import BrokerError, ErrorCode
from broker_engine.log.config import FOREVER, LogConfig
from broker_engine.log.files import Files
from broker_engine.log.flush import FlushJob
from broker_engine.log.replica_log import ReplicaLog
from broker_engine.log.results import LogState
from broker_engine.log.retention import DeletedSegment
from broker_engine.names import CLUSTER_METADATA, ROOT, Name, directory
from broker_engine.quorum.ready import Entry
from broker_engine.records.batch import decode_records, iter_batches, parse_header, verify_crc
from broker_engine.records.builder import NewRecord, build_batch
from broker_engine.records.compression import CorruptBatch
from broker_engine.server.checkpoints import read_checkpoint, write_checkpoint
from broker_engine.server.reserve import Reserve

log = logging.getLogger(__name__)

_PARTITION = (Name(ROOT, CLUSTER_METADATA), 0)
DIRECTORY = directory(*_PARTITION)
RECOVERY_POINT = "metadata-recovery-point-checkpoint"
_RECOVERY_POINT_INTERVAL_MS = 10_000
"""Each one costs an fsync, so not every change writes it."""
METADATA_TOPIC_ID = UUID(int=1)
"""Kafka's id of `__cluster_metadata`."""
_READ_BYTES = 1024 * 1024
_BATCH_BYTES_MAX = 1 << 30


class MetadataLog:
    def __init__(self, log: ReplicaLog, files: Files, clock: Clock) -> None:
        self._log = log
        self._files = files
        self._clock = clock
        self._point_due_ms = clock.monotonic_ms()
        self.reserve = Reserve(files)

    @classmethod
    def open(cls, files: Files, clock: Clock, *, start_offset: int = 0) -> MetadataLog:
        """Blocks. `start_offset` is the end of the oldest snapshot. BrokerError where something that was durable once
        is gone.
        """
        point = read_checkpoint(files, RECOVERY_POINT).get(_PARTITION)
        config = LogConfig(retention_ms=FOREVER, retention_bytes=FOREVER, is_deleting=False)
        log = ReplicaLog.open(
            files,
            DIRECTORY,
            config,
            clock,
            topic_id=METADATA_TOPIC_ID,
            recovery_point=point,
            log_start_offset=start_offset,
        )
        if log.state is LogState.DAMAGED or log.log_end_offset < (point or 0):
            end_offset = log.log_end_offset
            log.close()
            raise BrokerError(
                ErrorCode.KAFKA_STORAGE_ERROR,
                f"{DIRECTORY} is damaged: it was durable up to offset {point}, and not all of that can be read "
                f"(it ends at {end_offset}): restore the data directory from a copy",
            )
        opened = cls(log, files, clock)
        opened.reserve.refill()
        return opened

    @property
    def start_offset(self) -> int:
        return self._log.log_start_offset

    @property
    def end_offset(self) -> int:
        return self._log.log_end_offset

    @property
    def size_bytes(self) -> int:
        return self._log.size_bytes

    # --- reading

    def entries(self, offset: int) -> Iterator[Entry]:
        """Blocks. Every entry from `offset` on."""
        while offset < self.end_offset:
            data = self.read(offset, _READ_BYTES)
            if not data:
                raise BrokerError(ErrorCode.KAFKA_STORAGE_ERROR, f"the metadata log cannot be read at offset {offset}")
            for entry in parse_entries(data):
                offset = entry.end_offset
                yield entry

    def read(self, offset: int, max_bytes: int) -> bytes:
        """Stored batches from the page cache; the last one may be cut off."""
        read = self._log.read(offset, max_bytes=max_bytes, end_offset=self.end_offset, at_least_one=True)
        data = b"".join(file_range.read() for file_range in read.ranges)
        read.release()
        return data

    # --- writing

    def append(self, entry: Entry) -> None:
        """One change as one batch, in the page cache: the leader's bytes, where it came from one."""
        try:
            self._append(entry)
        except BrokerError:
            if self._log.state is not LogState.ONLINE or not self.reserve.release():
                raise
            self._append(entry)

    def _append(self, entry: Entry) -> None:
        if entry.batch:
            header = parse_header(entry.batch)
            assert header.base_offset == self.end_offset, "the log and the quorum core count alike"
            self._log.append_replica(memoryview(entry.batch), [header], 0, lambda _headers, _position: None)
            return
        now_ms = self._clock.now_ms()
        records = [NewRecord(now_ms, entry.control_key, value) for value in entry.values]
        batch = build_batch(records, is_control=entry.is_control)
        result = self._log.append(
            memoryview(batch), parse_header(batch), leader_epoch=entry.epoch, log_append_time_ms=None
        )
        assert result.base_offset == entry.base_offset, "the log and the quorum core count alike"

    def flush_job(self) -> FlushJob | None:
        """For a thread to run; None where nothing is unsynced, or a flush is in flight."""
        return self._log.flush_job()

    def on_flushed(self, job: FlushJob) -> int:
        """The durable end offset. BrokerError: the disk failed, for good."""
        return self._log.on_flushed(job)

    @property
    def is_point_due(self) -> bool:
        return self._clock.monotonic_ms() >= self._point_due_ms

    def save_point(self) -> None:
        """Blocks. How far the log was durable, for the next start to hold it to."""
        write_checkpoint(self._files, RECOVERY_POINT, [(_PARTITION, self._log.recovery_point)])
        self.reserve.refill()
        self._point_due_ms = self._clock.monotonic_ms() + _RECOVERY_POINT_INTERVAL_MS

    def truncate_to(self, offset: int) -> None:
        """Blocks until the cut is durable. The checkpoint first: else a crash in between would look like damage."""
        self._lower_point(offset)
        self._log.truncate_to(offset)

    def begin_anew(self, start_offset: int) -> None:
        """Blocks. A snapshot took the place of everything."""
        self._lower_point(0)
        self._log.begin_anew(start_offset)

    def _lower_point(self, offset: int) -> None:
        point = min(offset, self._log.recovery_point)
        write_checkpoint(self._files, RECOVERY_POINT, [(_PARTITION, point)] if point else [])

    def roll(self) -> None:
        """The next snapshot but one can then let go of what lies below."""
        self._log.roll()

    def take_out_below(self, offset: int) -> list[DeletedSegment]:
        """Whole segments below a snapshot's end; their `remove` blocks."""
        return self._log.delete_records_before(offset)

    def close(self) -> None:
        """Blocks. After a disk error there is nothing to promise, so no point is written; on a full disk the old one
        stays, and what else has to end with this node goes on."""
        if self._log.state is LogState.ONLINE:
            try:
                self.save_point()
            except OSError as error:
                log.warning("the next start will check the metadata log from further back: %s", error)
        self._log.close()


def parse_entries(data: bytes | memoryview) -> Iterator[Entry]:
    """Whole batches only. CorruptBatch where a checksum is wrong."""
    for batch in iter_batches(data):
        header = parse_header(batch)
        if not verify_crc(batch, header):
            raise CorruptBatch(f"the batch at offset {header.base_offset} does not match its checksum")
        records = list(decode_records(batch, max_bytes=_BATCH_BYTES_MAX))
        key = (records[0].key or b"") if header.is_control else None
        values = tuple(bytes(record.value or b"") for record in records)
        yield Entry(
            header.partition_leader_epoch,
            header.base_offset,
            values,
            None if key is None else bytes(key),
            bytes(batch),
        )
