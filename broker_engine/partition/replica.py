"""What a leader and a follower of a partition have in common: the log's offsets, and what producers did."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import StrEnum

from broker_engine.errors import BrokerError, ErrorCode
from broker_engine.partition.producer_snapshot import pack_snapshot, parse_snapshot
from broker_engine.partition.producers import EXPIRATION_MS_DEFAULT, PRODUCERS_MAX_DEFAULT, ProducerStates
from broker_engine.partition.refusals import Refusals
from broker_engine.records.control import TxnMarker, is_unreadable
from broker_engine.records.header import BatchHeader

Batches = Iterable[tuple[BatchHeader, TxnMarker | None]]


class AckDurability(StrEnum):
    FSYNC = "fsync"
    PAGE_CACHE = "page-cache"


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionSettings:
    """Configuration that may change while the partition is served."""

    ack_durability: AckDurability = AckDurability.FSYNC
    min_insync_replicas: int = 1
    producer_expiration_ms: int = EXPIRATION_MS_DEFAULT
    lag_time_ms_max: int = 30_000
    """replica.lag.time.max.ms"""


def restored_producers(
    producers: ProducerStates,
    snapshots: Iterable[tuple[int, bytes]],
    batches_from: Callable[[int], Batches],
    now_ms: int,
    *,
    unread_end_offset: int = 0,
) -> int:
    """Learn what producers did from the first readable snapshot and the batches behind it.

    `snapshots` are (offset, bytes), newest first; each covers what is below its offset. Of what is damaged below
    `unread_end_offset` there are no batches. Answers where the replay began: 0 without a snapshot.
    """
    start_offset = 0
    for offset, data in snapshots:
        entries = parse_snapshot(data)
        if entries is not None:
            producers.restore(entries, now_ms)
            start_offset = offset
            break
    end_offset = start_offset
    for header, marker in batches_from(start_offset):
        if is_unreadable(header, marker):
            producers.note_misread(header.base_offset)
        else:
            producers.record(header, header.base_offset, now_ms, marker)
        end_offset = header.next_offset
    producers.replayed = range(start_offset, end_offset)
    if unread_end_offset > start_offset:
        producers.unread_end_offset = unread_end_offset
        producers.is_partial = True
    return start_offset


class ReplicaCore:
    """One replica's term: it ends when the leader epoch or the role changes."""

    def __init__(
        self,
        *,
        leader_epoch: int,
        replicas: tuple[int, ...],
        isr: tuple[int, ...],
        log_start_offset: int,
        log_end_offset: int,
        durable_end_offset: int,
        high_watermark: int | None = None,
        partition_epoch: int = 0,
        settings: PartitionSettings | None = None,
        producers: ProducerStates | None = None,
        producers_max: int = PRODUCERS_MAX_DEFAULT,
        refusals: Refusals | None = None,
    ) -> None:
        """`high_watermark` is what this replica knew before; where nobody knows, the log's start."""
        assert all(member in replicas for member in isr), "in-sync replicas are replicas"
        assert log_start_offset <= durable_end_offset <= log_end_offset
        self.leader_epoch = leader_epoch
        self.partition_epoch = partition_epoch
        self.replicas = replicas
        self.isr = isr
        self.settings = settings or PartitionSettings()
        self.log_start_offset = log_start_offset
        self.log_end_offset = log_end_offset
        self.durable_end_offset = durable_end_offset
        known_offset = log_start_offset if high_watermark is None else high_watermark
        self.high_watermark = max(log_start_offset, min(known_offset, log_end_offset))
        if producers is None:
            expiration_ms = self.settings.producer_expiration_ms
            producers = ProducerStates(expiration_ms=expiration_ms, producers_max=producers_max)
        self.producers = producers
        self.producers.on_high_watermark(self.high_watermark)
        self.refusals = Refusals() if refusals is None else refusals
        self._stable_at_flush = self._durable_stable_offset = log_start_offset

    @property
    def cleanable_offset(self) -> int:
        """Below it every transaction is known to have ended, and its end is on disk: by a marker that a crash can take
        away again no compaction may tell which value of a key is the last.
        """
        if self.producers.is_partial:
            return self.log_start_offset
        stable_offset = self.last_stable_offset
        if self.durable_end_offset == self.log_end_offset:
            return stable_offset
        return min(stable_offset, self._durable_stable_offset)

    def on_flush_begun(self) -> None:
        """Of all that is in the log now."""
        self._stable_at_flush = self.last_stable_offset

    @property
    def last_stable_offset(self) -> int:
        """Below it every transaction has ended, and its end is committed."""
        first_offset = self.producers.first_unstable_offset
        if first_offset is None or first_offset >= self.high_watermark:
            return self.high_watermark
        return max(first_offset, self.log_start_offset)  # DeleteRecords may go beyond an open transaction's begin

    @property
    def is_fsync(self) -> bool:
        return self.settings.ack_durability is AckDurability.FSYNC

    @property
    def is_flush_due(self) -> bool:
        """Is there something that has to be on disk before it counts, and is not?"""
        return self.is_fsync and self.durable_end_offset < self.log_end_offset

    def replica_end_offsets(self) -> dict[int, int]:
        """By replica: where its log ends, as far as known here. A follower knows of itself only, and says nothing."""
        return {}

    def replay(self, headers: Iterable[BatchHeader], now_ms: int) -> None:
        """Learn from the stored log what producers did. They count as seen now: batch times are the clients' word."""
        for header in headers:
            self.producers.record(header, header.base_offset, now_ms)

    def restore(
        self,
        snapshots: Iterable[tuple[int, bytes]],
        batches_from: Callable[[int], Batches],
        now_ms: int,
        *,
        unread_end_offset: int = 0,
    ) -> int:
        def batches_behind(offset: int) -> Batches:
            return batches_from(offset) if offset < self.log_end_offset else ()

        return restored_producers(
            self.producers, snapshots, batches_behind, now_ms, unread_end_offset=unread_end_offset
        )

    def pack_producers(self) -> bytes | None:
        """A snapshot of what producers did below the log's end. None where not all of it is known."""
        return None if self.producers.is_partial else pack_snapshot(list(self.producers.entries()))

    def on_mended(self, headers: Iterable[BatchHeader], now_ms: int, *, is_whole: bool) -> None:
        """These batches can be read again; `is_whole`: all of the log can."""
        for header in headers:
            if self.producers.is_partial:
                self.producers.record_mended(header, now_ms)
            elif header.base_offset in self.producers.replayed:
                self.producers.note_misread(header.base_offset)  # it may have been rotten then
        if not self.producers.is_partial:
            return  # all was known, whatever rotted since
        if is_whole:
            self.producers.unread_end_offset = 0
            self.producers.is_partial = self.producers.doubtful_from is not None

    def note_refused(self, header: BatchHeader, code: ErrorCode, now_ms: int) -> None:
        """The shell could not take a client's batch, and it is to be sent again: maybe because this replica does not
        lead yet, though the client has heard so.
        """
        self.refusals.note(header, code, now_ms)

    def check_leader_epoch(self, current_leader_epoch: int) -> None:
        """A client's or follower's idea of the leader epoch; negative asks for no check."""
        if current_leader_epoch < 0 or current_leader_epoch == self.leader_epoch:
            return
        is_old = current_leader_epoch < self.leader_epoch
        code = ErrorCode.FENCED_LEADER_EPOCH if is_old else ErrorCode.UNKNOWN_LEADER_EPOCH
        raise BrokerError(code, f"leader epoch {current_leader_epoch}, here it is {self.leader_epoch}")

    def on_log_start(self, log_start_offset: int) -> None:
        """Retention, DeleteRecords or the leader moved the log's start."""
        assert self.log_start_offset <= log_start_offset <= self.high_watermark, "only committed records are removed"
        self.log_start_offset = log_start_offset

    def _set_high_watermark(self, offset: int) -> None:
        assert offset >= self.high_watermark, "a high watermark never moves back"
        assert self.log_start_offset <= offset <= self.log_end_offset, "only written records can be committed"
        self.high_watermark = offset
        self.producers.on_high_watermark(offset)

    def _note_flushed(self, durable_end_offset: int) -> None:
        assert durable_end_offset <= self.log_end_offset, "only written records can be durable"
        self.durable_end_offset = max(self.durable_end_offset, durable_end_offset)
        self._durable_stable_offset = self._stable_at_flush

    def _take_over(self, settings: PartitionSettings) -> None:
        self.settings = settings
        self.producers.expiration_ms = settings.producer_expiration_ms
