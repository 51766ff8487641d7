"""What idempotent producers did last on one partition: each sequence is appended once, a resend answers its offset.

Rules by Kafka 4.3.1 (protocol text 2.6). Bounded: five batches per producer, idle producers are forgotten after a day,
and beyond a number of them the one idle longest goes. A forgotten producer may go on with any sequence, as in Kafka.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from typing import NamedTuple

from broker_engine.errors import BrokerError, ErrorCode
from broker_engine.records.header import NO_SEQUENCE, SEQUENCE_END, BatchHeader

REMEMBERED_BATCHES = 5
EXPIRATION_MS_DEFAULT = 24 * 3600 * 1000
PRODUCERS_MAX_DEFAULT = 20_000


class BatchMetadata(NamedTuple):
    first_sequence: int
    last_sequence: int
    base_offset: int
    last_offset: int
    timestamp: int


class Producer:
    __slots__ = ("batches", "epoch", "last_seen_ms")

    def __init__(self, epoch: int) -> None:
        self.epoch = epoch
        self.batches: deque[BatchMetadata] = deque(maxlen=REMEMBERED_BATCHES)
        self.last_seen_ms = 0

    @property
    def last_sequence(self) -> int:
        return self.batches[-1].last_sequence if self.batches else NO_SEQUENCE

    @property
    def next_sequence(self) -> int:
        return (self.last_sequence + 1) % SEQUENCE_END


class ProducerStates:
    def __init__(
        self, *, expiration_ms: int = EXPIRATION_MS_DEFAULT, producers_max: int = PRODUCERS_MAX_DEFAULT
    ) -> None:
        self.expiration_ms = expiration_ms
        self._producers_max = producers_max
        self._producers: OrderedDict[int, Producer] = OrderedDict()
        """Longest idle first."""

    def __len__(self) -> int:
        return len(self._producers)

    def find(self, producer_id: int) -> Producer | None:
        return self._producers.get(producer_id)

    def check(self, header: BatchHeader) -> BatchMetadata | None:
        """None if the batch may be appended; the earlier batch if this one is a resend of it; else BrokerError."""
        if not header.has_producer_id:
            return None
        producer = self._producers.get(header.producer_id)
        if producer is None:
            return None
        if header.producer_epoch == producer.epoch:
            return _check_sequence(producer, header)
        _check_new_epoch(producer, header)
        return None

    def record(self, header: BatchHeader, base_offset: int, now_ms: int) -> None:
        """Take note of a batch that is in the log now, from a produce or from a recovery."""
        if not header.has_producer_id:
            return
        producer = self._producers.get(header.producer_id)
        if producer is None or producer.epoch != header.producer_epoch:
            producer = self._producers[header.producer_id] = Producer(header.producer_epoch)
        self._producers.move_to_end(header.producer_id)
        producer.last_seen_ms = now_ms
        if header.base_sequence != NO_SEQUENCE:  # control batches have none
            last_offset = base_offset + header.last_offset_delta
            producer.batches.append(
                BatchMetadata(
                    header.base_sequence, header.last_sequence, base_offset, last_offset, header.max_timestamp
                )
            )
        if len(self._producers) > self._producers_max:
            self._producers.popitem(last=False)

    def expire(self, now_ms: int) -> int:
        """Forget producers that were idle for too long. Answers how many."""
        count = 0
        while self._producers:
            longest_idle = next(iter(self._producers.values()))
            if now_ms - longest_idle.last_seen_ms <= self.expiration_ms:
                break
            self._producers.popitem(last=False)
            count += 1
        return count


def _check_sequence(producer: Producer, header: BatchHeader) -> BatchMetadata | None:
    first, last = header.base_sequence, header.last_sequence
    if first == producer.next_sequence:
        return None
    for batch in producer.batches:
        if batch.first_sequence == first and batch.last_sequence == last:
            return batch
    raise BrokerError(
        ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
        f"producer {header.producer_id} sent sequence {first}, expected {producer.next_sequence}",
    )


def _check_new_epoch(producer: Producer, header: BatchHeader) -> None:
    if header.producer_epoch < producer.epoch:
        raise BrokerError(
            ErrorCode.INVALID_PRODUCER_EPOCH,
            f"producer {header.producer_id} has epoch {header.producer_epoch}, known is {producer.epoch}",
        )
    if header.base_sequence != 0:
        raise BrokerError(
            ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
            f"producer {header.producer_id} begins epoch {header.producer_epoch} with sequence {header.base_sequence}",
        )
