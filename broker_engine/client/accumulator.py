"""What the producer holds: one queue per partition, and one bound on the memory of all. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from broker_engine.client.batches import (
    IN_FLIGHT_BATCHES_MAX,
    Outcome,
    PartitionQueue,
    ProducerBatch,
    ProducerIdentity,
)
from broker_engine.client.model import TopicPartition
from broker_engine.records.builder import NewRecord


class MemoryBound:
    def __init__(self, limit_bytes: int) -> None:
        self.limit_bytes = limit_bytes
        self.used_bytes = 0

    def try_reserve(self, size_bytes: int) -> bool:
        if self.used_bytes + size_bytes > self.limit_bytes:
            return False
        self.used_bytes += size_bytes
        return True

    def release(self, size_bytes: int) -> None:
        self.used_bytes -= size_bytes
        assert self.used_bytes >= 0, "more was released than reserved"


class Accumulator:
    def __init__(
        self,
        *,
        batch_size_bytes: int,
        linger_ms: int,
        codec: int,
        is_idempotent: bool,
        acks: int,
        is_transactional: bool = False,
    ) -> None:
        self._batch_size_bytes = batch_size_bytes
        self._linger_ms = linger_ms
        self._codec = codec
        self._is_idempotent = is_idempotent
        self._is_transactional = is_transactional
        # Without sequence numbers a second batch on the wire could overtake the first when that is sent again.
        self._in_flight_max = IN_FLIGHT_BATCHES_MAX if is_idempotent or acks == 0 else 1
        self._queues: dict[TopicPartition, PartitionQueue] = {}
        self._busy: dict[TopicPartition, PartitionQueue] = {}

    def queue(self, target: TopicPartition) -> PartitionQueue:
        queue = self._queues.get(target)
        if queue is None:
            queue = self._queues[target] = PartitionQueue(
                target,
                batch_size_bytes=self._batch_size_bytes,
                codec=self._codec,
                is_idempotent=self._is_idempotent,
                in_flight_max=self._in_flight_max,
                is_transactional=self._is_transactional,
            )
        return queue

    def append(
        self, target: TopicPartition, record: NewRecord, outcome: Outcome, *, size_bytes: int, now_ms: int
    ) -> None:
        queue = self.queue(target)
        queue.append(record, outcome, size_bytes, now_ms)
        self._busy[target] = queue

    def due(self, now_ms: int, *, without_linger: bool) -> tuple[list[PartitionQueue], int | None]:
        """The queues whose head may leave now, and when the next one may (None: not before something happens)."""
        linger_ms = 0 if without_linger else self._linger_ms
        due: list[PartitionQueue] = []
        next_ms: int | None = None
        for queue in self._live_queues():
            due_ms = queue.due_ms(linger_ms)
            if due_ms is None:
                continue
            if due_ms <= now_ms:
                due.append(queue)
            else:
                next_ms = due_ms if next_ms is None else min(next_ms, due_ms)
        return due, next_ms

    def is_due(self, queue: PartitionQueue, now_ms: int, *, without_linger: bool) -> bool:
        due_ms = queue.due_ms(0 if without_linger else self._linger_ms)
        return due_ms is not None and due_ms <= now_ms

    def _live_queues(self) -> Iterator[PartitionQueue]:
        for target, queue in list(self._busy.items()):
            if queue.is_idle:
                del self._busy[target]
            else:
                yield queue

    def serve_last(self, queue: PartitionQueue) -> None:
        """A queue that was served goes behind the others, so that a full request never starves one."""
        if self._busy.pop(queue.target, None) is not None:
            self._busy[queue.target] = queue

    @property
    def has_holes(self) -> bool:
        return any(queue.has_hole for queue in self._queues.values())

    def renew(self, identity: ProducerIdentity) -> None:
        for queue in self._queues.values():
            queue.renew(identity)

    def expire(self, now_ms: int, delivery_timeout_ms: int) -> list[ProducerBatch]:
        return [batch for queue in self._busy.values() for batch in queue.expire(now_ms, delivery_timeout_ms)]

    def drop_waiting(self) -> list[ProducerBatch]:
        return [batch for queue in self._busy.values() for batch in queue.drop_waiting()]

    def drop_all(self) -> list[ProducerBatch]:
        return [batch for queue in self._busy.values() for batch in queue.drop_all()]
