"""The producer's queue of one partition: batches that fill, wait, are on the wire, or wait to be sent again.

Pure. Two promises are kept here and nowhere else: records of one partition reach the log in the order they were handed
over, and an idempotent producer's sequence numbers have neither gap nor overlap within one producer epoch.
"""

from __future__ import annotations

from bisect import insort_right
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from broker_engine.client.errors import KafkaError
from broker_engine.client.model import TopicPartition
from broker_engine.records.builder import BatchBuilder, NewRecord, restamp
from broker_engine.records.decode import decode_records

IN_FLIGHT_BATCHES_MAX = 5
"""A broker remembers the last five batches of a producer: a sixth could not be told from a duplicate."""

_SEQUENCE_MASK = 0x7FFFFFFF
_EPOCH_MAX = 32_767 - 1

_SPLIT_BYTES_MAX = 1 << 31

_RECORD_OVERHEAD_BYTES_MAX = 36
_HEADER_OVERHEAD_BYTES_MAX = 10


class Outcome(Protocol):
    """Whoever waits for one record."""

    def succeed(self, offset: int, log_append_time_ms: int) -> None: ...

    def fail(self, error: KafkaError) -> None: ...


@dataclass(frozen=True, slots=True)
class ProducerIdentity:
    producer_id: int
    epoch: int

    def next_epoch(self) -> ProducerIdentity | None:
        """None when this id's epochs are used up and a new id is needed."""
        return ProducerIdentity(self.producer_id, self.epoch + 1) if self.epoch < _EPOCH_MAX else None


NO_IDENTITY = ProducerIdentity(-1, -1)


def record_size_bytes_max(key: bytes | None, value: bytes | None, headers: Sequence[tuple[str, bytes | None]]) -> int:
    """What one record may take in an uncompressed batch, at most. Cheaper than to encode it, and never too low."""
    size = _RECORD_OVERHEAD_BYTES_MAX + len(key or b"") + len(value or b"")
    for name, content in headers:
        size += _HEADER_OVERHEAD_BYTES_MAX + 4 * len(name) + len(content or b"")
    return size


class ProducerBatch:
    """Records of one partition that travel together. Open while `attempts` is 0; then only its identity may change."""

    def __init__(
        self, target: TopicPartition, order: int, created_ms: int, codec: int, *, is_transactional: bool = False
    ) -> None:
        self.target = target
        self.order = order
        self.is_transactional = is_transactional
        self.created_ms = created_ms
        self.outcomes: list[Outcome] = []
        self.reserved_bytes = 0
        self.attempts = 0
        self.retry_at_ms = 0
        self.identity: ProducerIdentity | None = None
        self.base_sequence = -1
        self.may_be_in_log = False
        """It was sent, and no broker has said that it does not have it."""
        self._codec = codec
        self._builder: BatchBuilder | None = BatchBuilder(codec=codec)
        self._encoded: bytes | None = None
        self._stamp: tuple[ProducerIdentity | None, int] = (None, -1)

    @property
    def record_count(self) -> int:
        return len(self.outcomes)

    @property
    def size_bytes(self) -> int:
        """Before compression while open, as sent afterwards."""
        if self._encoded is not None:
            return len(self._encoded)
        assert self._builder is not None
        return self._builder.size_bytes

    def add(self, record: NewRecord, outcome: Outcome, reserved_bytes: int) -> None:
        assert self._builder is not None, "a batch that was sent takes no further record"
        self._builder.append(record)
        self.outcomes.append(outcome)
        self.reserved_bytes += reserved_bytes

    def encode(self) -> bytes:
        """The batch with its present identity. What collected the records is let go at the first call."""
        stamp = self.identity, self.base_sequence
        identity = self.identity if self.identity is not None else NO_IDENTITY
        fields = identity.producer_id, identity.epoch, self.base_sequence
        if self._encoded is None:
            self._encoded = self._close_builder(*fields)
        elif stamp != self._stamp:
            self._encoded = restamp(
                self._encoded, producer_id=fields[0], producer_epoch=fields[1], base_sequence=fields[2]
            )
        self._stamp = stamp
        return self._encoded

    def _close_builder(self, producer_id: int, epoch: int, base_sequence: int) -> bytes:
        assert self._builder is not None
        builder, self._builder = self._builder, None
        return builder.close(
            producer_id=producer_id,
            producer_epoch=epoch,
            base_sequence=base_sequence,
            is_transactional=self.is_transactional,
        )

    def forget_sequence(self) -> None:
        self.identity, self.base_sequence = None, -1

    def halves(self) -> tuple[ProducerBatch, ProducerBatch]:
        records = decode_records(self.encode(), max_bytes=_SPLIT_BYTES_MAX)
        middle = len(records) // 2
        first, second = self._like_this(), self._like_this()
        reserved_bytes = self.reserved_bytes
        for index, (record, outcome) in enumerate(zip(records, self.outcomes, strict=True)):
            share = reserved_bytes // (len(records) - index)
            reserved_bytes -= share
            fresh = NewRecord(record.timestamp, record.key, record.value, record.headers)
            (first if index < middle else second).add(fresh, outcome, share)
        return first, second

    def _like_this(self) -> ProducerBatch:
        kind = self.is_transactional
        return ProducerBatch(self.target, self.order, self.created_ms, self._codec, is_transactional=kind)

    def succeed(self, base_offset: int, log_append_time_ms: int) -> None:
        for index, outcome in enumerate(self.outcomes):
            outcome.succeed(base_offset + index if base_offset >= 0 else -1, log_append_time_ms)

    def fail(self, error: KafkaError) -> None:
        for outcome in self.outcomes:
            outcome.fail(error)


class PartitionQueue:
    def __init__(
        self,
        target: TopicPartition,
        *,
        batch_size_bytes: int,
        codec: int,
        is_idempotent: bool,
        in_flight_max: int,
        is_transactional: bool = False,
    ) -> None:
        self.target = target
        self.is_transactional = is_transactional
        self.used_up_producer_id = -1
        """While an identity is needed: not this one again."""
        self._batch_size_bytes = batch_size_bytes
        self._codec = codec
        self._is_idempotent = is_idempotent
        self._in_flight_max = in_flight_max
        self._waiting: deque[ProducerBatch] = deque()
        self._on_wire: list[ProducerBatch] = []
        self._wire_leader = -1
        """Whose answer the batches on the wire wait for."""
        self._next_order = 0
        self._identity: ProducerIdentity | None = None
        self._next_sequence = 0
        self._needs_new_epoch = False
        self._doubtful: list[ProducerBatch] = []
        """May be in the log under numbers that are over: sent again under new ones they could stand there twice."""

    @property
    def is_idle(self) -> bool:
        return not self._waiting and not self._on_wire and not self._doubtful

    @property
    def waiting_count(self) -> int:
        return len(self._waiting)

    def starts_batch(self, size_bytes: int) -> bool:
        """Would a record of this size begin a new batch?"""
        return not self._waiting or not self._fits(self._waiting[-1], size_bytes)

    def _fits(self, batch: ProducerBatch, size_bytes: int) -> bool:
        is_open = batch.attempts == 0
        return is_open and batch.size_bytes + size_bytes <= self._batch_size_bytes

    def append(self, record: NewRecord, outcome: Outcome, size_bytes: int, now_ms: int) -> None:
        if self.starts_batch(size_bytes):
            self._next_order += 1
            kind = self.is_transactional
            batch = ProducerBatch(self.target, self._next_order, now_ms, self._codec, is_transactional=kind)
            self._waiting.append(batch)
        self._waiting[-1].add(record, outcome, size_bytes)

    def due_ms(self, linger_ms: int) -> int | None:
        """The time from which the head may leave; None when there is nothing, or it has to wait for an answer."""
        if not self._waiting or not self._may_send():
            return None
        head = self._waiting[0]
        if head.attempts > 0:
            return head.retry_at_ms
        is_full = len(self._waiting) > 1 or head.size_bytes >= self._batch_size_bytes
        return head.created_ms if is_full else head.created_ms + linger_ms

    def _may_send(self) -> bool:
        """While a batch is being sent again nothing overtakes it: this partition then has one batch on the wire."""
        is_retrying = self._waiting[0].attempts > 0 or any(batch.attempts > 1 for batch in self._on_wire)
        limit = 1 if is_retrying or self._needs_new_epoch else self._in_flight_max
        return len(self._on_wire) < limit

    @property
    def needs_identity(self) -> bool:
        return self._is_idempotent and self._identity is None

    def set_identity(self, identity: ProducerIdentity) -> None:
        assert not self._on_wire, "numbers change only while nothing is on the wire"
        self._identity, self._next_sequence = identity, 0

    def may_go_to(self, leader_id: int) -> bool:
        """Not past a batch that another leader has not answered: where ours knows nothing of this producer it takes any
        number for the first, and the batch before would come behind when it is sent again.
        """
        return not self._on_wire or self._wire_leader == leader_id

    def take(self, leader_id: int) -> ProducerBatch:
        """Move the head to the wire. Call it only when `due_ms` has come and an identity is there."""
        assert self._waiting, "the partition has nothing that could leave"
        assert self._may_send(), "the head has to wait for an answer"
        assert self.may_go_to(leader_id), "the head has to wait for another leader's answer"
        self._wire_leader = leader_id
        batch = self._waiting.popleft()
        batch.attempts += 1
        if self._is_idempotent and batch.base_sequence < 0:
            self._assign_sequence(batch)
        self._on_wire.append(batch)
        return batch

    def _assign_sequence(self, batch: ProducerBatch) -> None:
        assert self._identity is not None, "a sequence needs a producer id"
        batch.identity, batch.base_sequence = self._identity, self._next_sequence
        self._next_sequence = (self._next_sequence + batch.record_count) & _SEQUENCE_MASK

    def is_oldest(self, batch: ProducerBatch) -> bool:
        return all(other.order >= batch.order for other in (*self._on_wire, *self._waiting))

    def finish(self, batch: ProducerBatch) -> None:
        """The broker has the batch."""
        self._leave_wire(batch)

    def give_up(self, batch: ProducerBatch) -> None:
        """The batch is not in the log, or nobody knows: its numbers leave a hole."""
        self._needs_new_epoch = self._is_idempotent
        self._leave_wire(batch)

    def retry(self, batch: ProducerBatch, retry_at_ms: int, *, in_new_epoch: bool = False) -> None:
        self._needs_new_epoch = self._needs_new_epoch or (in_new_epoch and self._is_idempotent)
        batch.retry_at_ms = retry_at_ms
        self._put_back(batch)
        self._leave_wire(batch)

    def split(self, batch: ProducerBatch) -> None:
        """The broker found the batch too large: its halves take its place."""
        self._needs_new_epoch = self._is_idempotent
        for half in batch.halves():
            half.attempts = batch.attempts
            self._put_back(half)
        self._leave_wire(batch)

    def _put_back(self, batch: ProducerBatch) -> None:
        # A deque has no sorted insertion; it happens only after a failure, so the copy does not matter.
        ordered = list(self._waiting)
        insort_right(ordered, batch, key=lambda other: other.order)
        self._waiting = deque(ordered)

    def _leave_wire(self, batch: ProducerBatch) -> None:
        self._on_wire.remove(batch)
        self._begin_epoch_if_due()

    def _begin_epoch_if_due(self) -> None:
        """Number anew from 0 in the next producer epoch, but only while no batch with old numbers is on the wire."""
        if not self._needs_new_epoch or self._on_wire or self.is_transactional:
            return
        self._needs_new_epoch = False
        self._next_sequence = 0
        if self._identity is not None:
            self.used_up_producer_id = self._identity.producer_id
            self._identity = self._identity.next_epoch()
        self._doubtful += [batch for batch in self._waiting if batch.may_be_in_log]
        self._waiting = deque(batch for batch in self._waiting if not batch.may_be_in_log)
        for batch in self._waiting:
            batch.forget_sequence()

    @property
    def has_hole(self) -> bool:
        """Of a transactional producer: numbers were given up, so that only a new epoch can go on."""
        return self._needs_new_epoch

    def renew(self, identity: ProducerIdentity) -> None:
        """The coordinator has raised the epoch of a transactional producer: numbers begin at 0 again."""
        assert not self._waiting, "what was left of the transaction is dropped by now"
        self.set_identity(identity)
        self._needs_new_epoch = False

    def expire(self, now_ms: int, delivery_timeout_ms: int) -> list[ProducerBatch]:
        """Take out the waiting batches whose time is over, and those that cannot be sent again."""
        expired: list[ProducerBatch] = []
        while self._waiting and now_ms - self._waiting[0].created_ms >= delivery_timeout_ms:
            expired.append(self._waiting.popleft())
        if any(batch.base_sequence >= 0 for batch in expired):
            self._needs_new_epoch = True
            self._begin_epoch_if_due()
        doubtful, self._doubtful = self._doubtful, []
        return expired + doubtful

    def drop_waiting(self) -> list[ProducerBatch]:
        """What was not sent, or waits to be sent again, is the caller's to fail."""
        dropped, self._waiting, self._doubtful = [*self._doubtful, *self._waiting], deque(), []
        self._needs_new_epoch = self._needs_new_epoch or any(batch.base_sequence >= 0 for batch in dropped)
        return dropped

    def drop_all(self) -> list[ProducerBatch]:
        """For a close that does not wait: also what is on the wire. The queue is not used afterwards."""
        on_wire, self._on_wire = self._on_wire, []
        return on_wire + self.drop_waiting()
