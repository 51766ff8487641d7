"""One partition of which this broker has a replica: its log, its pure core, and who waits on it.

Everything here runs on the event loop without an await, so nothing comes between a decision and its append. Carries
out the core's effects: a flush is asked for, waiters are told. Opening, deleting and flushing run in threads
(partitions.py, flush.py); what only a follower does is in following.py.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import NamedTuple, NoReturn, Protocol
from uuid import UUID

from broker_engine.clock import Clock
from broker_engine.config import TopicConfig
from broker_engine.errors import BrokerError, ErrorCode
from broker_engine.log.flush import FlushJob
from broker_engine.log.partition_log import LogRead
from broker_engine.log.replica_log import ReplicaLog
from broker_engine.log.retention import DeletedSegment
from broker_engine.log.timestamps import TimestampOffset
from broker_engine.log.txn_index import AbortedTransaction
from broker_engine.names import Name
from broker_engine.partition.core import (
    AdvanceHighWatermark,
    Duplicate,
    Effect,
    FailAcks,
    IsrProposal,
    NeedFlush,
    NoteAborted,
    PartitionCore,
    PartitionSettings,
    ProposeIsr,
)
from broker_engine.partition.follower_core import FollowerCore
from broker_engine.partition.verification import Guard
from broker_engine.records.batch import check_produced, parse_header
from broker_engine.records.check import plain_headers
from broker_engine.records.control import TxnMarker
from broker_engine.records.header import BatchHeader
from broker_engine.records.recompress import as_stored
from broker_engine.server.acks import OnAcked
from broker_engine.server.fetch_waiter import FetchWaiter
from broker_engine.server.flush_rules import FlushRules
from broker_engine.server.offset_waiters import OffsetWaiters
from broker_engine.server.replication_throttle import ThrottledReplicas
from broker_engine.server.topic_settings import log_config, produce_limits

UP_TO_HIGH_WATERMARK = -1


class Appended(NamedTuple):
    base_offset: int
    end_offset: int
    """Acked once the high watermark has reached this."""
    log_append_time_ms: int
    log_start_offset: int
    record_count: int


class AppendedRun(NamedTuple):
    base_offset: int
    end_offset: int
    log_start_offset: int
    record_counts: list[int]
    """Of each batch."""


class ReplicaWatch(Protocol):
    """A follower's fetch session, as far as the partition knows it."""

    def on_news(self, *, is_urgent: bool) -> None:
        """There is something to tell the follower: records or another role are urgent, moved offsets are not."""
        ...


def _propose_nothing(partition: LocalPartition, proposal: IsrProposal) -> None:
    raise AssertionError("a partition with followers has somebody who asks the controller")


class LocalPartition:
    def __init__(
        self,
        *,
        name: Name,
        index: int,
        topic_id: UUID,
        log: ReplicaLog,
        core: PartitionCore | FollowerCore,
        leader_id: int,
        config: TopicConfig,
        clock: Clock,
        request_flush: Callable[[LocalPartition], None],
        on_changed: Callable[[LocalPartition], None],
        propose_isr: Callable[[LocalPartition, IsrProposal], None] = _propose_nothing,
        on_doubted: Callable[[LocalPartition, int], None] = lambda local, offset: None,
    ) -> None:
        self.name = name
        self.index = index
        self.topic_partition = (name, index)
        """Made once: checkpoints ask for those of all, every few seconds."""
        self.topic_id = topic_id
        self.log = log
        self.leading: PartitionCore | None = None
        self.following: FollowerCore | None = None
        self._take_role(core, leader_id)
        self.last_append_ms = 0
        self.is_retired = False
        self.recovery_point_max: int | None = None
        """Set before a truncation: no checkpoint may say that more than this is durable."""
        self.busy: asyncio.Future[None] | None = None
        """While the log is cut or read again, in a thread: nobody else touches it, and its role does not change."""
        self.fetch_waiters: dict[FetchWaiter, None] = {}
        self.replica_watches: dict[ReplicaWatch, None] = {}
        self._ack_waiters = OffsetWaiters()
        self._durable_waiters = OffsetWaiters()
        self._appended_bytes = 0  # since waiters were last told
        self._unstable_bytes = 0  # at least so many above the last stable offset that readers were told of
        self._told_stable_offset = core.last_stable_offset
        self._clock = clock
        self._request_flush = request_flush
        self._on_changed = on_changed
        self._propose_isr = propose_isr
        self._on_doubted = on_doubted
        log.on_doubted = self._doubt
        self._flush_rules = FlushRules(self.request_flush)
        self._take_over(config)

    # --- roles

    @property
    def is_leader(self) -> bool:
        return self.leading is not None

    def _take_role(self, core: PartitionCore | FollowerCore, leader_id: int) -> None:
        self.core, self.leader_id = core, leader_id
        self.leading = core if isinstance(core, PartitionCore) else None
        self.following = core if isinstance(core, FollowerCore) else None
        self.log.pack_producers = core.pack_producers

    def change_role(self, core: PartitionCore | FollowerCore, leader_id: int) -> None:
        """A new term: what was promised in the last one is not this one's to keep."""
        assert self.busy is None, "nothing comes between a cut and its end"
        self._take_role(core, leader_id)
        self.fail_waiters(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        self._tell_replicas(is_urgent=True)
        if core.is_flush_due:
            self._request_flush(self)
        self._on_changed(self)

    async def settled(self) -> None:
        """Returns when no cut is under way."""
        while self.busy is not None:
            await asyncio.shield(self.busy)

    def _take_over(self, config: TopicConfig) -> None:
        self._limits = produce_limits(config)
        self._flush_rules.configure(config)
        self.throttled_serving = ThrottledReplicas(config.leader_replication_throttled_replicas)
        self.throttled_fetching = ThrottledReplicas(config.follower_replication_throttled_replicas)

    def configure(self, config: TopicConfig, settings: PartitionSettings) -> None:
        """New topic configuration, in force from now on."""
        self._take_over(config)
        self.log.config = log_config(config)
        self.perform(self.core.configure(settings))
        self._apply_flush_rules()

    # --- what readers see

    @property
    def leader_epoch(self) -> int:
        return self.core.leader_epoch

    @property
    def log_start_offset(self) -> int:
        return self.log.log_start_offset

    @property
    def knows_latest_offset(self) -> bool:
        """Else a client could be told an end below one that it has seen already."""
        return self.leading is not None and self.leading.knows_latest_offset

    @property
    def high_watermark(self) -> int:
        return self.core.high_watermark

    @property
    def last_stable_offset(self) -> int:
        return self.core.last_stable_offset

    def read(self, offset: int, *, bytes_max: int, is_committed_only: bool, at_least_one: bool) -> LogRead:
        core = self.leading or self._not_leading()
        end_offset = core.last_stable_offset if is_committed_only else core.high_watermark
        return self.log.read(offset, max_bytes=bytes_max, end_offset=end_offset, at_least_one=at_least_one)

    def aborted_in(self, read: LogRead, offset: int) -> list[AbortedTransaction]:
        """What a reader of committed records passes over in what it just read from `offset` on."""
        return self.log.aborted_in(read, offset, self.core.last_stable_offset)

    def read_for_replica(self, offset: int, *, bytes_max: int, at_least_one: bool) -> LogRead:
        """Everything that is written: followers have it before it is committed."""
        core = self.leading or self._not_leading()
        return self.log.read(offset, max_bytes=bytes_max, end_offset=core.log_end_offset, at_least_one=at_least_one)

    def _doubt(self, offset: int) -> None:
        self._on_doubted(self, offset)

    def _not_leading(self) -> NoReturn:
        """Whoever waited here was just woken: the files may be there a moment longer, the topic or the role is not."""
        raise BrokerError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION if self.is_retired else ErrorCode.NOT_LEADER_OR_FOLLOWER)

    def end_offset_for_epoch(self, epoch: int) -> tuple[int, int]:
        """(largest epoch not above the given one, its end offset), or (-1, -1).

        The log learns of a leader's epoch with the first append in it, so that a restart of thousands of partitions
        writes nothing; until then the term is here, and begins at the log's end. An epoch before all that is known
        ended where that begins: a reader that was there before the first record has nothing to go back for.
        """
        latest_epoch = self.log.latest_epoch
        if latest_epoch < epoch <= self.leader_epoch:
            found = epoch if epoch == self.leader_epoch or latest_epoch < 0 else latest_epoch
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

    def append(self, records: memoryview, *, produce_version: int, acks: int, guard: Guard | None = None) -> Appended:
        """Check a client's batch and write it to the page cache. BrokerError: nothing was appended.

        The first batch of a transaction needs the guard with which the coordinator was asked about it.
        """
        core = self.leading or self._not_leading()
        now_ms = self._clock.now_ms()
        header = check_produced(records, produce_version=produce_version, limits=self._limits, now_ms=now_ms)
        monotonic_ms = self._clock.monotonic_ms()
        decision = core.decide_produce(header, acks, monotonic_ms, guard)
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
        try:
            result = self.log.append(records, header, leader_epoch=core.leader_epoch, log_append_time_ms=append_time_ms)
        except BrokerError as error:
            core.note_refused(header, error.code, monotonic_ms)
            raise
        self.last_append_ms = now_ms
        self._appended_bytes += header.size_bytes
        self.perform(core.on_appended(result, header, monotonic_ms))
        self.after_append()
        return Appended(
            result.base_offset,
            result.last_offset + 1,
            result.log_append_time_ms,
            self.log_start_offset,
            header.record_count,
        )

    def append_run(self, batches: Sequence[memoryview], *, produce_version: int, acks: int) -> AppendedRun | None:
        """As many of a client's batches, from the first on, as need no look of their own: in one write, and with one
        word to whoever waits. None: nothing was done, `append` says why not.
        """
        core = self.leading or self._not_leading()
        now_ms, monotonic_ms = self._clock.now_ms(), self._clock.monotonic_ms()
        headers = plain_headers(batches, produce_version=produce_version, limits=self._limits, now_ms=now_ms)
        count = core.run_length(headers, acks, monotonic_ms) if headers else 0
        if count == 0:
            return None
        if count < len(batches):
            batches, headers = batches[:count], headers[:count]
        result = self.log.append_run(batches, headers, leader_epoch=core.leader_epoch)
        if result is None:
            return None
        base_offset, end_offset = result.base_offset, result.last_offset + 1
        self.last_append_ms = now_ms
        self._appended_bytes += sum(map(len, batches))
        self.perform(core.on_run_appended(headers, base_offset, end_offset, monotonic_ms))
        self.after_append()
        return AppendedRun(base_offset, end_offset, self.log_start_offset, [each.record_count for each in headers])

    def note_refused(self, header: BatchHeader, code: ErrorCode) -> None:
        """A client's batch was refused before it came here: what is behind it is not out of order."""
        self.core.note_refused(header, code, self._clock.monotonic_ms())

    @property
    def message_bytes_max(self) -> int:
        """Of one batch."""
        return self._limits.max_message_bytes

    def check_size(self, header: BatchHeader) -> None:
        if header.size_bytes > self.message_bytes_max:
            raise BrokerError(ErrorCode.MESSAGE_TOO_LARGE)

    def append_own(self, batch: bytes, marker: TxnMarker | None = None) -> int:
        """A batch that the broker itself made (telemetry, markers): nothing is checked. Where it ends."""
        core = self.leading or self._not_leading()
        header = parse_header(batch)
        with self.log.room_for_aborted(int(marker is not None and not marker.is_commit)):
            result = self.log.append(memoryview(batch), header, leader_epoch=core.leader_epoch, log_append_time_ms=None)
            self._appended_bytes += header.size_bytes
            self.perform(core.on_appended(result, header, self._clock.monotonic_ms(), marker))
        if self.replica_watches:
            self._tell_replicas(is_urgent=True)
        self._apply_flush_rules()
        return result.last_offset + 1

    def after_append(self) -> None:
        if self.replica_watches:
            self._tell_replicas(is_urgent=True)
        if self._flush_rules.has_any:
            self._apply_flush_rules()
        self._on_changed(self)

    def when_acked(self, end_offset: int, on_acked: OnAcked) -> None:
        if self.core.high_watermark >= end_offset:
            on_acked(ErrorCode.NONE)
        else:
            self._ack_waiters.add(end_offset, on_acked)

    def now_ms(self) -> int:
        return self._clock.now_ms()

    def monotonic_ms(self) -> int:
        return self._clock.monotonic_ms()

    def note_changed(self) -> None:
        self._on_changed(self)

    # --- flush

    async def wait_until_durable(self, end_offset: int) -> None:
        """Until everything below the offset is on disk. BrokerError where that will not be."""
        if self.log.durable_end_offset >= end_offset:
            return
        done: asyncio.Future[ErrorCode] = asyncio.get_running_loop().create_future()
        self.when_durable(end_offset, lambda code: None if done.done() else done.set_result(code))
        code = await done
        if code is not ErrorCode.NONE:
            raise BrokerError(code)

    def when_durable(self, end_offset: int, on_durable: OnAcked) -> None:
        """Called once, maybe at once: NONE, or why it will not be durable."""
        if self.log.durable_end_offset >= end_offset:
            on_durable(ErrorCode.NONE)
            return
        self._durable_waiters.add(end_offset, on_durable)
        self.request_flush()

    def request_flush(self) -> None:
        """Bring what is in the log to the disk, though nobody waits for it."""
        self._request_flush(self)

    def _apply_flush_rules(self) -> None:
        if self._flush_rules.has_any:
            self._flush_rules.apply(self.core.log_end_offset - self.core.durable_end_offset)

    def flush_job(self) -> FlushJob | None:
        job = self.log.flush_job() if self.busy is None else None
        if job is not None:
            self.core.on_flush_begun()
        return job

    @property
    def recovery_point(self) -> int:
        """For the checkpoint: below it everything is on disk, and stays."""
        point = self.log.recovery_point
        return point if self.recovery_point_max is None else min(point, self.recovery_point_max)

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
        self.perform(self.core.on_flushed(durable_end_offset))
        if self._durable_waiters:
            self._durable_waiters.tell(durable_end_offset)

    # --- upkeep

    def apply_retention(self, now_ms: int) -> list[DeletedSegment]:
        if self.busy is not None:
            return []
        first_base = self.log.segment_bases[0]
        deleted = self.log.apply_retention(now_ms, high_watermark=self.core.last_stable_offset)
        if self.log.segment_bases[0] != first_base:
            self.note_log_start()
        return deleted

    def note_log_start(self) -> None:
        self.core.on_log_start(self.log.log_start_offset)
        self._tell_replicas(is_urgent=False)
        self._on_changed(self)

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
        self.note_log_start()
        return deleted

    def retire(self, code: ErrorCode) -> None:
        """This broker no longer serves the partition."""
        self.is_retired = True
        self.leading = self.following = None
        self._tell_replicas(is_urgent=True)
        self._flush_rules.cancel()
        self.fail_waiters(code)

    def fail_waiters(self, code: ErrorCode) -> None:
        """Whoever waits looks elsewhere."""
        self._ack_waiters.fail(code)
        self._durable_waiters.fail(code)
        for waiter in list(self.fetch_waiters):
            waiter.wake()

    def perform(self, effects: list[Effect]) -> None:
        for effect in effects:
            if isinstance(effect, NeedFlush):
                self._request_flush(self)
            elif isinstance(effect, AdvanceHighWatermark):
                self._tell_waiters(effect.offset)
            elif isinstance(effect, NoteAborted):
                self.log.note_aborted(AbortedTransaction.of(effect.transaction))
            elif isinstance(effect, ProposeIsr):
                self._propose_isr(self, effect.proposal)
            elif isinstance(effect, FailAcks):
                self._ack_waiters.fail(effect.code)

    def _tell_waiters(self, high_watermark: int) -> None:
        if self._ack_waiters:
            self._ack_waiters.tell(high_watermark)
        new_bytes, self._appended_bytes = self._appended_bytes, 0
        self._unstable_bytes += new_bytes
        if self.fetch_waiters:
            self._tell_readers(max(1, new_bytes))
        if self.replica_watches:
            self._tell_replicas(is_urgent=False)
        self._on_changed(self)

    def _tell_readers(self, new_bytes: int) -> None:
        """Readers of committed records only are told when the last stable offset moves: of all that it let go."""
        stable_offset = self.core.last_stable_offset
        is_stable_news = stable_offset != self._told_stable_offset
        for waiter in list(self.fetch_waiters):
            if not waiter.is_committed_only:
                waiter.notify(new_bytes)
            elif is_stable_news:
                waiter.notify(max(1, self._unstable_bytes))
        self._told_stable_offset = stable_offset
        if stable_offset == self.core.high_watermark:
            self._unstable_bytes = 0

    def _tell_replicas(self, *, is_urgent: bool) -> None:
        for watch in self.replica_watches:
            watch.on_news(is_urgent=is_urgent)
