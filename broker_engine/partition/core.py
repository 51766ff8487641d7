"""A partition's leader, pure: decides about each batch, and how far the log is committed.

The shell calls decide_produce, log.append and on_appended without awaiting in between; flushes report by on_flushed.
Seats left for replication: `isr` and `replicas` stay for a leader's term, and only this broker's own offsets count.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from broker_engine.errors import BrokerError, ErrorCode
from broker_engine.partition.producer_snapshot import pack_snapshot, parse_snapshot
from broker_engine.partition.producers import EXPIRATION_MS_DEFAULT, PRODUCERS_MAX_DEFAULT, ProducerStates
from broker_engine.records.control import TxnMarker
from broker_engine.records.header import NO_TIMESTAMP, BatchHeader

ACKS_ALL = -1


class AckDurability(StrEnum):
    FSYNC = "fsync"
    PAGE_CACHE = "page-cache"


@dataclass(frozen=True, slots=True)
class Append:
    """The batch is next: append it, then call on_appended."""


@dataclass(frozen=True, slots=True)
class Duplicate:
    """The batch is in the log already: answer with these, nothing is appended."""

    base_offset: int
    last_offset: int
    log_append_time_ms: int
    """The stored batch's timestamp, whatever the topic's timestamp type: as Kafka answers."""


@dataclass(frozen=True, slots=True)
class AdvanceHighWatermark:
    """Wake producers with acks=-1 and readers that wait below `offset`."""

    offset: int


@dataclass(frozen=True, slots=True)
class NeedFlush:
    """What was appended is not committed before it is on disk: start a flush unless one is in flight."""


Effect = AdvanceHighWatermark | NeedFlush
ProduceDecision = Append | Duplicate

APPEND = Append()
NEED_FLUSH = NeedFlush()


class Appended(Protocol):
    """What the core needs to know of log.AppendResult."""

    @property
    def base_offset(self) -> int: ...

    @property
    def last_offset(self) -> int: ...

    @property
    def log_append_time_ms(self) -> int: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionSettings:
    """Topic configuration that may change while the partition is led."""

    ack_durability: AckDurability = AckDurability.FSYNC
    min_insync_replicas: int = 1
    producer_expiration_ms: int = EXPIRATION_MS_DEFAULT


class PartitionCore:
    def __init__(
        self,
        *,
        leader_epoch: int,
        replicas: tuple[int, ...],
        isr: tuple[int, ...],
        log_start_offset: int,
        log_end_offset: int,
        durable_end_offset: int,
        settings: PartitionSettings | None = None,
        producers_max: int = PRODUCERS_MAX_DEFAULT,
    ) -> None:
        assert set(isr) <= set(replicas), "in-sync replicas are replicas"
        assert log_start_offset <= durable_end_offset <= log_end_offset
        self.leader_epoch = leader_epoch
        self.replicas = replicas
        self.isr = isr
        self.settings = settings or PartitionSettings()
        self.log_start_offset = log_start_offset
        self.log_end_offset = log_end_offset
        self.durable_end_offset = durable_end_offset
        self.high_watermark = log_start_offset
        self.producers = ProducerStates(expiration_ms=self.settings.producer_expiration_ms, producers_max=producers_max)
        self._advance()

    @property
    def last_stable_offset(self) -> int:
        return self.high_watermark

    def replay(self, headers: Iterable[BatchHeader], now_ms: int) -> None:
        """Learn from the stored log what producers did. They count as seen now: batch times are the clients' word."""
        for header in headers:
            self.producers.record(header, header.base_offset, now_ms)

    def restore(
        self,
        snapshots: Iterable[tuple[int, bytes]],
        batches_from: Callable[[int], Iterable[tuple[BatchHeader, TxnMarker | None]]],
        now_ms: int,
    ) -> int:
        """Learn what producers did from the first readable snapshot and the batches behind it.

        `snapshots` are (offset, bytes), newest first; each covers what is below its offset. Answers where the replay
        began: 0 without a snapshot.
        """
        start_offset = 0
        for offset, data in snapshots:
            entries = parse_snapshot(data)
            if entries is not None:
                self.producers.restore(entries, now_ms)
                start_offset = offset
                break
        for header, marker in batches_from(start_offset):
            self.producers.record(header, header.base_offset, now_ms, marker)
        return start_offset

    def pack_producers(self) -> bytes:
        """A snapshot of what producers did below the log's end."""
        return pack_snapshot(list(self.producers.entries()))

    def check_leader_epoch(self, current_leader_epoch: int) -> None:
        """A client's or follower's idea of the leader epoch; negative asks for no check."""
        if current_leader_epoch < 0 or current_leader_epoch == self.leader_epoch:
            return
        is_old = current_leader_epoch < self.leader_epoch
        code = ErrorCode.FENCED_LEADER_EPOCH if is_old else ErrorCode.UNKNOWN_LEADER_EPOCH
        raise BrokerError(code, f"leader epoch {current_leader_epoch}, here it is {self.leader_epoch}")

    def decide_produce(self, header: BatchHeader, acks: int, now_ms: int) -> ProduceDecision:
        """What to do with a checked batch. BrokerError refuses it; nothing changes here either way."""
        if acks == ACKS_ALL and not self._has_enough_replicas:
            raise BrokerError(
                ErrorCode.NOT_ENOUGH_REPLICAS,
                f"{len(self.isr)} replicas in sync, min.insync.replicas is {self.settings.min_insync_replicas}",
            )
        self.producers.expire(now_ms)
        earlier = self.producers.check(header)
        if earlier is None:
            return APPEND
        return Duplicate(earlier.base_offset, earlier.last_offset, earlier.timestamp)

    def on_appended(self, result: Appended, header: BatchHeader, now_ms: int) -> list[Effect]:
        assert result.base_offset == self.log_end_offset, "appended where the log ended"
        self.log_end_offset = result.last_offset + 1
        if result.log_append_time_ms != NO_TIMESTAMP:
            header = header._replace(max_timestamp=result.log_append_time_ms)
        self.producers.record(header, result.base_offset, now_ms)
        if self.settings.ack_durability is AckDurability.FSYNC:
            return [NEED_FLUSH]
        return self._advance()

    def on_flushed(self, durable_end_offset: int) -> list[Effect]:
        assert durable_end_offset <= self.log_end_offset, "only written records can be durable"
        self.durable_end_offset = max(self.durable_end_offset, durable_end_offset)
        return self._advance()

    def on_log_start(self, log_start_offset: int) -> None:
        """Retention or DeleteRecords moved the log's start."""
        assert self.log_start_offset <= log_start_offset <= self.high_watermark, "only committed records are removed"
        self.log_start_offset = log_start_offset

    def configure(self, settings: PartitionSettings) -> list[Effect]:
        """New topic configuration, in force from now on."""
        self.settings = settings
        self.producers.expiration_ms = settings.producer_expiration_ms
        effects = self._advance()
        is_flush_due = settings.ack_durability is AckDurability.FSYNC and self.durable_end_offset < self.log_end_offset
        return [*effects, NEED_FLUSH] if is_flush_due else effects

    def is_committed(self, last_offset: int) -> bool:
        """May acks=-1 be answered for a batch that ends here?"""
        return last_offset < self.high_watermark

    @property
    def _has_enough_replicas(self) -> bool:
        return len(self.isr) >= self.settings.min_insync_replicas

    def _advance(self) -> list[Effect]:
        if not self._has_enough_replicas:
            return []
        is_fsync = self.settings.ack_durability is AckDurability.FSYNC
        committed = self.durable_end_offset if is_fsync else self.log_end_offset
        # After a change from page-cache to fsync the durable end may be behind what was shown already.
        if committed <= self.high_watermark:
            return []
        self._set_high_watermark(committed)
        return [AdvanceHighWatermark(committed)]

    def _set_high_watermark(self, offset: int) -> None:
        assert offset >= self.high_watermark, "a high watermark never moves back"
        assert self.log_start_offset <= offset <= self.log_end_offset, "only written records can be committed"
        self.high_watermark = offset
