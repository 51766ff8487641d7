"""A log with a clock in hand, and the few verbs that the tests' stories are told in."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from uuid import UUID

from broker_engine.log.config import LogConfig
from broker_engine.log.files import Files
from broker_engine.log.partition_log import AppendResult, no_jitter
from broker_engine.log.replica_log import ReplicaLog
from broker_engine.records.batch import Record, decode_records, iter_batches, parse_header
from broker_engine.records.builder import NewRecord, build_batch

TOPIC_ID = UUID("12345678-1234-4234-8234-123456789abc")
DIRECTORY = "tenants/demo/orders-0"
START_MS = 1_700_000_000_000
ALL_BYTES = 1 << 30


class ManualClock:
    def __init__(self, now_ms: int = START_MS) -> None:
        self.time_ms = now_ms

    def now_ms(self) -> int:
        return self.time_ms

    def monotonic_ms(self) -> int:
        return self.time_ms


class LogHarness:
    def __init__(
        self, files: Files, config: LogConfig | None = None, *, jitter: Callable[[], float] = no_jitter
    ) -> None:
        self.files = files
        self.jitter = jitter
        self.clock = ManualClock()
        self.config = config or LogConfig()
        self.log = self.open()

    def open(self, *, recovery_point: int | None = None, log_start_offset: int = 0) -> ReplicaLog:
        self.log = ReplicaLog.open(
            self.files,
            DIRECTORY,
            self.config,
            self.clock,
            topic_id=TOPIC_ID,
            recovery_point=recovery_point,
            log_start_offset=log_start_offset,
            jitter=self.jitter,
        )
        return self.log

    def append(self, *values: bytes, epoch: int = 0, timestamp_ms: int | None = None, codec: int = 0) -> AppendResult:
        stamp = self.clock.now_ms() if timestamp_ms is None else timestamp_ms
        batch = build_batch([NewRecord(stamp, b"k", value) for value in values], codec=codec)
        return self.append_batch(batch, epoch=epoch)

    def append_batch(self, batch: bytes, *, epoch: int = 0, log_append_time_ms: int | None = None) -> AppendResult:
        return self.log.append(
            memoryview(batch), parse_header(batch), leader_epoch=epoch, log_append_time_ms=log_append_time_ms
        )

    def flush(self) -> int:
        job = self.log.flush_job()
        assert job is not None, "something to flush"
        job.run()
        return self.log.on_flushed(job)

    def fetch(self, offset: int, *, max_bytes: int = ALL_BYTES, end_offset: int | None = None) -> bytes:
        end = self.log.log_end_offset if end_offset is None else end_offset
        read = self.log.read(offset, max_bytes=max_bytes, end_offset=end, at_least_one=True)
        data = b"".join(file_range.read() for file_range in read.ranges)
        assert len(data) == read.size_bytes
        read.release()
        return data

    def records(self, start: int | None = None) -> list[Record]:
        """All records from `start` on, read as a consumer reads: fetch after fetch."""
        offset = self.log.log_start_offset if start is None else start
        found: list[Record] = []
        while batches := list(iter_batches(self.fetch(offset))):
            for batch in batches:
                found += [record for record in decode_records(batch, max_bytes=ALL_BYTES) if record.offset >= offset]
            offset = parse_header(batches[-1]).next_offset
        return found

    def values(self, start: int | None = None) -> list[bytes | None]:
        return [record.value for record in self.records(start)]


def numbered(count: int, *, size_bytes: int = 20) -> Sequence[bytes]:
    return [b"%0*d" % (size_bytes, number) for number in range(count)]
