"""One partition that this broker leads: its log, its pure core, and who waits on it.

Everything here runs on the event loop without an await, so nothing comes between a decision and its append. Carries
out the core's effects: a flush is asked for, waiters are told. Opening, deleting and flushing run in threads
(partitions.py, flush.py).
"""

from __future__ import annotations

import asyncio
import heapq
from collections.abc import Callable
from typing import NamedTuple
from uuid import UUID

from broker_engine.clock import Clock
from broker_engine.config import TopicConfig
from broker_engine.config.topic import LONG_MAX
from broker_engine.errors import BrokerError, ErrorCode
from broker_engine.log.config import LogConfig
from broker_engine.log.flush import FlushJob
from broker_engine.log.partition_log import LogRead, PartitionLog
from broker_engine.log.retention import DeletedSegment
from broker_engine.log.timestamps import TimestampOffset
from broker_engine.names import Name
from broker_engine.partition.core import (
    AckDurability,
    AdvanceHighWatermark,
    Duplicate,
    Effect,
    NeedFlush,
    PartitionCore,
    PartitionSettings,
)
from broker_engine.records.batch import ProduceLimits, check_produced, parse_header
from broker_engine.records.compression import Codec, StoredCompression
from broker_engine.records.recompress import as_stored
from broker_engine.server.acks import OnAcked
from broker_engine.server.fetch_waiter import FetchWaiter

UP_TO_HIGH_WATERMARK = -1
_TIMER_MS_MAX = 86_400_000


class Appended(NamedTuple):
    base_offset: int
    end_offset: int
    """Acked once the high watermark has reached this."""
    log_append_time_ms: int
    log_start_offset: int
    record_count: int


class LocalPartition:
    def __init__(
        self,
        *,
        name: Name,
        index: int,
        topic_id: UUID,
        log: PartitionLog,
        core: PartitionCore,
        leader_id: int,
        config: TopicConfig,
        clock: Clock,
        request_flush: Callable[[LocalPartition], None],
        on_changed: Callable[[LocalPartition], None],
    ) -> None:
        self.name = name
        self.index = index
        self.topic_id = topic_id
        self.log = log
        self.core = core
        self.leader_id = leader_id
        self.last_append_ms = 0
        self.is_retired = False
        self.fetch_waiters: dict[FetchWaiter, None] = {}
        self._ack_waiters: list[tuple[int, int, OnAcked]] = []  # a heap by offset; the number keeps equal ones apart
        self._ack_number = 0
        self._durable_waiters: list[tuple[int, asyncio.Future[ErrorCode]]] = []
        self._appended_bytes = 0  # since waiters were last told
        self._clock = clock
        self._request_flush = request_flush
        self._on_changed = on_changed
        self._flush_timer: asyncio.TimerHandle | None = None
        self._take_over(config)

    def _take_over(self, config: TopicConfig) -> None:
        self._limits = produce_limits(config)
        self._flush_messages = config.flush_messages
        self._flush_ms = config.flush_ms
        has_rules = min(config.flush_messages, config.flush_ms) < LONG_MAX
        self._has_flush_rules = has_rules and config.ack_durability != AckDurability.FSYNC.value

    def configure(self, config: TopicConfig, settings: PartitionSettings) -> None:
        """New topic configuration, in force from now on."""
        self._take_over(config)
        self.log.config = log_config(config)
        self._cancel_flush_timer()
        self._perform(self.core.configure(settings))
        if self._has_flush_rules:
            self._apply_flush_rules()

    # --- what readers see

    @property
    def leader_epoch(self) -> int:
        return self.core.leader_epoch

    @property
    def log_start_offset(self) -> int:
        return self.log.log_start_offset

    @property
    def high_watermark(self) -> int:
        return self.core.high_watermark

    @property
    def last_stable_offset(self) -> int:
        return self.core.last_stable_offset

    def read(self, offset: int, *, bytes_max: int, is_committed_only: bool, at_least_one: bool) -> LogRead:
        if self.is_retired:
            # Whoever waited here was just woken: the files may be there a moment longer, the topic is not.
            raise BrokerError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        end_offset = self.core.last_stable_offset if is_committed_only else self.core.high_watermark
        return self.log.read(offset, max_bytes=bytes_max, end_offset=end_offset, at_least_one=at_least_one)

    def end_offset_for_epoch(self, epoch: int) -> tuple[int, int]:
        """(largest epoch not above the given one, its end offset), or (-1, -1).

        The log learns of a leader's epoch with the first append in it, so that a restart of thousands of partitions
        writes nothing; until then the term is here, and begins at the log's end.
        """
        if self.log.latest_epoch < epoch <= self.leader_epoch:
            found = epoch if epoch == self.leader_epoch else self.log.latest_epoch
            return found, self.log.log_end_offset
        return self.log.end_offset_for_epoch(epoch)

    def epoch_of(self, offset: int) -> int:
        return self.log.epoch_of(offset) if offset < self.log.log_end_offset else self.leader_epoch

    def find_by_timestamp(self, timestamp_ms: int, end_offset: int) -> TimestampOffset | None:
        """May read and decompress: for a thread."""
        return self.log.find_by_timestamp(timestamp_ms, end_offset)

    def find_max_timestamp(self, end_offset: int) -> TimestampOffset | None:
        """May read and decompress: for a thread."""
        return self.log.max_timestamp_offset(end_offset)

    # --- append

    def append(self, records: memoryview, *, produce_version: int, acks: int) -> Appended:
        """Check a client's batch and write it to the page cache. BrokerError: nothing was appended."""
        now_ms = self._clock.now_ms()
        header = check_produced(records, produce_version=produce_version, limits=self._limits, now_ms=now_ms)
        decision = self.core.decide_produce(header, acks, now_ms)
        if isinstance(decision, Duplicate):
            return Appended(
                decision.base_offset,
                decision.last_offset + 1,
                decision.log_append_time_ms,
                self.log_start_offset,
                record_count=0,
            )
        records, header = as_stored(records, header, self._limits)
        append_time_ms = now_ms if self._limits.uses_log_append_time else None
        result = self.log.append(
            records, header, leader_epoch=self.core.leader_epoch, log_append_time_ms=append_time_ms
        )
        self.last_append_ms = now_ms
        self._appended_bytes += header.size_bytes
        self._perform(self.core.on_appended(result, header, now_ms))
        if self._has_flush_rules:
            self._apply_flush_rules()
        self._on_changed(self)
        return Appended(
            result.base_offset,
            result.last_offset + 1,
            result.log_append_time_ms,
            self.log_start_offset,
            header.record_count,
        )

    def append_own(self, batch: bytes) -> None:
        """A batch that the broker itself made (telemetry): no producer, no waiting."""
        header = parse_header(batch)
        now_ms = self._clock.now_ms()
        result = self.log.append(
            memoryview(batch), header, leader_epoch=self.core.leader_epoch, log_append_time_ms=None
        )
        self._appended_bytes += header.size_bytes
        self._perform(self.core.on_appended(result, header, now_ms))
        if self._has_flush_rules:
            self._apply_flush_rules()

    def when_acked(self, end_offset: int, on_acked: OnAcked) -> None:
        if self.core.high_watermark >= end_offset:
            on_acked(ErrorCode.NONE)
            return
        self._ack_number += 1
        heapq.heappush(self._ack_waiters, (end_offset, self._ack_number, on_acked))

    # --- flush

    async def wait_until_durable(self, end_offset: int) -> None:
        """Until everything below the offset is on disk. BrokerError where that will not be."""
        if self.log.durable_end_offset >= end_offset:
            return
        done: asyncio.Future[ErrorCode] = asyncio.get_running_loop().create_future()
        self._durable_waiters.append((end_offset, done))
        self.request_flush()
        code = await done
        if code is not ErrorCode.NONE:
            raise BrokerError(code)

    def request_flush(self) -> None:
        """Bring what is in the log to the disk, though nobody waits for it."""
        self._request_flush(self)

    def _apply_flush_rules(self) -> None:
        """flush.messages and flush.ms: for topics whose acks do not wait for the disk."""
        unflushed_count = self.core.log_end_offset - self.core.durable_end_offset
        if unflushed_count >= self._flush_messages:
            self._request_flush(self)
        elif unflushed_count > 0 and self._flush_timer is None and self._flush_ms < LONG_MAX:
            wait_s = min(self._flush_ms, _TIMER_MS_MAX) / 1000
            self._flush_timer = asyncio.get_running_loop().call_later(wait_s, self._on_flush_time)

    def _on_flush_time(self) -> None:
        self._flush_timer = None
        self._request_flush(self)

    def _cancel_flush_timer(self) -> None:
        if self._flush_timer is not None:
            self._flush_timer.cancel()
            self._flush_timer = None

    def flush_job(self) -> FlushJob | None:
        return self.log.flush_job()

    def on_flushed(self, job: FlushJob) -> None:
        """BrokerError where the disk failed: the log is offline, and nobody is told that anything was kept."""
        if self.is_retired:
            job.release()  # the directory may be gone already: whatever the job met there means nothing
            return
        try:
            durable_end_offset = self.log.on_flushed(job)
        except BrokerError:
            self.fail_waiters(ErrorCode.KAFKA_STORAGE_ERROR)
            raise
        self._perform(self.core.on_flushed(durable_end_offset))
        if self._durable_waiters:
            self._tell_durable_waiters(durable_end_offset)

    def _tell_durable_waiters(self, durable_end_offset: int) -> None:
        waiters, self._durable_waiters = self._durable_waiters, []
        for end_offset, done in waiters:
            if end_offset > durable_end_offset:
                self._durable_waiters.append((end_offset, done))
            elif not done.done():
                done.set_result(ErrorCode.NONE)

    # --- upkeep

    def apply_retention(self, now_ms: int) -> list[DeletedSegment]:
        deleted = self.log.apply_retention(now_ms, high_watermark=self.core.high_watermark)
        if deleted:
            self.core.on_log_start(self.log.log_start_offset)
            self._on_changed(self)
        return deleted

    def deletable_offset(self, asked_offset: int) -> int:
        """Where the log may be made to start; -1 asks for the high watermark. BrokerError where it may not."""
        if not self.log.config.is_deleting:
            raise BrokerError(ErrorCode.POLICY_VIOLATION, "records of a compacted topic are replaced, not deleted")
        offset = self.high_watermark if asked_offset == UP_TO_HIGH_WATERMARK else asked_offset
        if not 0 <= offset <= self.high_watermark:
            raise BrokerError(ErrorCode.OFFSET_OUT_OF_RANGE, f"records are committed up to {self.high_watermark}")
        return offset

    def delete_records_before(self, offset: int) -> list[DeletedSegment]:
        """Raise the log's start to a deletable offset; below the start there is nothing to do."""
        if self.is_retired:
            raise BrokerError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        if offset <= self.log_start_offset:
            return []
        deleted = self.log.delete_records_before(offset)
        self.core.on_log_start(self.log.log_start_offset)
        self._on_changed(self)
        return deleted

    def retire(self, code: ErrorCode) -> None:
        """This broker no longer serves the partition."""
        self.is_retired = True
        self._cancel_flush_timer()
        self.fail_waiters(code)

    def fail_waiters(self, code: ErrorCode) -> None:
        """Whoever waits looks elsewhere."""
        waiters, self._ack_waiters = self._ack_waiters, []
        for _, _, on_acked in waiters:
            on_acked(code)
        for _, done in self._durable_waiters:
            if not done.done():
                done.set_result(code)
        self._durable_waiters.clear()
        for waiter in list(self.fetch_waiters):
            waiter.wake()

    def _perform(self, effects: list[Effect]) -> None:
        for effect in effects:
            if isinstance(effect, NeedFlush):
                self._request_flush(self)
            elif isinstance(effect, AdvanceHighWatermark):
                self._tell_waiters(effect.offset)

    def _tell_waiters(self, high_watermark: int) -> None:
        while self._ack_waiters and self._ack_waiters[0][0] <= high_watermark:
            heapq.heappop(self._ack_waiters)[2](ErrorCode.NONE)
        new_bytes, self._appended_bytes = self._appended_bytes, 0
        for waiter in list(self.fetch_waiters):
            waiter.notify(max(1, new_bytes))
        self._on_changed(self)


def produce_limits(config: TopicConfig) -> ProduceLimits:
    return ProduceLimits(
        max_message_bytes=config.max_message_bytes,
        validate_records=config.record_validation == "full",
        is_compacted=config.is_compacted,
        uses_log_append_time=config.uses_log_append_time,
        timestamp_before_ms_max=config.message_timestamp_before_max_ms,
        timestamp_after_ms_max=config.message_timestamp_after_max_ms,
        stored_as=stored_compression(config),
    )


def stored_compression(config: TopicConfig) -> StoredCompression | None:
    match config.compression_type:
        case "uncompressed":
            return StoredCompression(Codec.NONE)
        case "gzip":
            return StoredCompression(Codec.GZIP, config.compression_gzip_level)
        case "snappy":
            return StoredCompression(Codec.SNAPPY)
        case "lz4":
            return StoredCompression(Codec.LZ4, config.compression_lz4_level)
        case "zstd":
            return StoredCompression(Codec.ZSTD, config.compression_zstd_level)
    return None  # producer


def log_config(config: TopicConfig) -> LogConfig:
    return LogConfig(
        segment_bytes=config.segment_bytes,
        # A record in the active segment is not compacted: it must not stay there for longer than the greatest lag.
        segment_ms=min(config.segment_ms, config.max_compaction_lag_ms) if config.is_compacted else config.segment_ms,
        segment_index_bytes=config.segment_index_bytes,
        index_interval_bytes=config.index_interval_bytes,
        retention_ms=config.retention_ms,
        retention_bytes=config.retention_bytes,
        is_deleting="delete" in config.cleanup_policy,
        is_compacting=config.is_compacted,
        min_cleanable_dirty_ratio=config.min_cleanable_dirty_ratio,
        min_compaction_lag_ms=config.min_compaction_lag_ms,
        max_compaction_lag_ms=config.max_compaction_lag_ms,
        delete_retention_ms=config.delete_retention_ms,
    )


def partition_settings(config: TopicConfig, producer_expiration_ms: int) -> PartitionSettings:
    return PartitionSettings(
        ack_durability=AckDurability(config.ack_durability),
        min_insync_replicas=config.min_insync_replicas,
        producer_expiration_ms=producer_expiration_ms,
    )
