"""Sends records: collected per partition into batches, acknowledged, sent again where needed, in order.

Three ways to send: `send_nowait` (fire and forget, or look at the future later), `await send` (until the broker has
it), `send_nowait(..., on_delivery=...)` (a callback on the loop). Safe to share between all tasks of one event loop,
and best shared: one producer's batches are fuller than many producers'. Not safe across threads.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Literal, NamedTuple, Self

from broker_engine.client.accumulator import Accumulator, MemoryBound
from broker_engine.client.batches import ProducerIdentity, record_size_bytes_max
from broker_engine.client.client import Client
from broker_engine.client.errors import BufferExhausted, ClientClosed, KafkaError, UnknownTopic
from broker_engine.client.metadata import TopicView
from broker_engine.client.model import RecordMetadata, TopicPartition
from broker_engine.client.partitioner import StickyPartitioner
from broker_engine.client.sender import Gate, Sender, SenderConfig
from broker_engine.client.tasks import TaskSet
from broker_engine.errors import ErrorCode
from broker_engine.records.builder import NewRecord
from broker_engine.records.compression import Codec

log = logging.getLogger(__name__)

CodecName = Literal["none", "gzip", "snappy", "lz4", "zstd"]
OnDelivery = Callable[[RecordMetadata | None, KafkaError | None], None]
"""Called once per record, on the loop: with where it is, or with why it is not."""


class _Delivery:
    """One record's way back to its sender."""

    __slots__ = ("future", "on_delivery", "target", "timestamp_ms")

    def __init__(
        self, future: asyncio.Future[RecordMetadata], timestamp_ms: int, on_delivery: OnDelivery | None
    ) -> None:
        self.future = future
        self.on_delivery = on_delivery
        self.timestamp_ms = timestamp_ms
        self.target = TopicPartition("", -1)

    def succeed(self, offset: int, log_append_time_ms: int) -> None:
        timestamp_ms = log_append_time_ms if log_append_time_ms >= 0 else self.timestamp_ms
        metadata = RecordMetadata(*self.target, offset, timestamp_ms)
        if not self.future.done():
            self.future.set_result(metadata)
        self._call(metadata, None)

    def fail(self, error: KafkaError) -> None:
        if not self.future.done():
            self.future.set_exception(error)
            # Fire and forget is a way to send: nobody need look at the future, and the loop must not complain.
            self.future.exception()
        self._call(None, error)

    def _call(self, metadata: RecordMetadata | None, error: KafkaError | None) -> None:
        if self.on_delivery is None:
            return
        try:
            self.on_delivery(metadata, error)
        except Exception:  # the callback is the caller's code: its bug must not stop everybody's records
            log.exception("a delivery callback failed")


class _Unplaced(NamedTuple):
    """A record whose topic is not known yet."""

    record: NewRecord
    partition: int | None
    size_bytes: int
    delivery: _Delivery


class Producer:
    def __init__(
        self,
        client: Client,
        *,
        linger_ms: int = 5,
        batch_size_bytes: int = 16_384,
        buffer_memory_bytes: int = 32 << 20,
        max_block_ms: int = 60_000,
        acks: int = -1,
        idempotent: bool | None = None,
        codec: CodecName = "none",
        delivery_timeout_ms: int = 120_000,
        max_request_bytes: int = 1 << 20,
        auto_create_topics: bool = True,
        gate: Gate | None = None,
    ) -> None:
        """`idempotent` defaults to true with acks=-1; with less the broker's promise would not carry it.

        `batch_size_bytes` and `buffer_memory_bytes` count records before compression. `auto_create_topics` only lets
        the broker decide; one that does not create topics on first use answers UnknownTopic. `gate` is for
        TransactionalProducer.
        """
        if acks not in (-1, 0, 1):
            raise ValueError("acks is -1 (all in-sync replicas), 1 (the leader) or 0 (nobody)")
        if idempotent and acks != -1:
            raise ValueError("an idempotent producer needs acks=-1")
        is_idempotent = acks == -1 if idempotent is None else idempotent
        self._client = client
        self._max_block_ms = max_block_ms
        self._auto_create_topics = auto_create_topics
        self._memory = MemoryBound(buffer_memory_bytes)
        self._waiters: deque[tuple[int, asyncio.Future[None]]] = deque()
        self._partitioner = StickyPartitioner(client.randomness.unit)
        self._accumulator = Accumulator(
            batch_size_bytes=batch_size_bytes,
            linger_ms=linger_ms,
            codec=Codec[codec.upper()],
            is_idempotent=is_idempotent,
            acks=acks,
            is_transactional=gate is not None,
        )
        self._sender = Sender(
            client,
            self._accumulator,
            SenderConfig(acks, is_idempotent, delivery_timeout_ms, max_request_bytes),
            on_released=self._release,
            is_hurried=self._is_hurried,
            gate=gate,
        )
        self._tasks = TaskSet(f"producer {client.config.client_id}")
        self._unplaced: dict[str, list[_Unplaced]] = {}
        self._outstanding: set[asyncio.Future[RecordMetadata]] = set()
        self._flush_count = 0
        self._is_started = self._is_closed = False

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    @property
    def buffered_bytes(self) -> int:
        """What is handed over and not acknowledged, by the same count as `buffer_memory_bytes`."""
        return self._memory.used_bytes

    # Sending

    def send_nowait(
        self,
        topic: str,
        value: bytes | None,
        *,
        key: bytes | None = None,
        partition: int | None = None,
        headers: Sequence[tuple[str, bytes | None]] = (),
        timestamp_ms: int | None = None,
        on_delivery: OnDelivery | None = None,
    ) -> asyncio.Future[RecordMetadata]:
        """Hand a record over without waiting for anything. BufferExhausted at once when there is no room."""
        record, size_bytes = self._prepare(value, key, headers, timestamp_ms)
        if self._waiters or not self._memory.try_reserve(size_bytes):
            raise BufferExhausted(f"the producer's buffer of {self._memory.limit_bytes} bytes is full")
        return self._accept(topic, record, partition, size_bytes, on_delivery)

    async def enqueue(
        self,
        topic: str,
        value: bytes | None,
        *,
        key: bytes | None = None,
        partition: int | None = None,
        headers: Sequence[tuple[str, bytes | None]] = (),
        timestamp_ms: int | None = None,
        on_delivery: OnDelivery | None = None,
    ) -> asyncio.Future[RecordMetadata]:
        """Wait for room in the buffer, at most `max_block_ms`, but not for the broker."""
        record, size_bytes = self._prepare(value, key, headers, timestamp_ms)
        await self._reserve(size_bytes)
        return self._accept(topic, record, partition, size_bytes, on_delivery)

    async def send(
        self,
        topic: str,
        value: bytes | None,
        *,
        key: bytes | None = None,
        partition: int | None = None,
        headers: Sequence[tuple[str, bytes | None]] = (),
        timestamp_ms: int | None = None,
    ) -> RecordMetadata:
        """Return when the broker has acknowledged the record as `acks` says."""
        future = await self.enqueue(
            topic, value, key=key, partition=partition, headers=headers, timestamp_ms=timestamp_ms
        )
        return await asyncio.shield(future)  # a caller that stops waiting does not take its record back

    async def flush(self) -> None:
        """Send what is collected without lingering, and return when all of it is acknowledged or failed."""
        outstanding = set(self._outstanding)
        if not outstanding:
            return
        self._flush_count += 1
        self._sender.wake()
        try:
            await asyncio.wait(outstanding)
        finally:
            self._flush_count -= 1

    # What TransactionalProducer needs

    @property
    def is_idle(self) -> bool:
        """Everything that was handed over has its answer."""
        return not self._outstanding

    def wake(self) -> None:
        """Look again at what may leave now."""
        self._sender.wake()

    async def discard(self, reason: KafkaError) -> bool:
        """After the gate was shut: return when nothing is under way. True: numbers are used up, a new epoch is due."""
        for topic in list(self._unplaced):
            self._fail_unplaced(topic, reason)
        await self.flush()
        return self._accumulator.has_holes

    def renew(self, identity: ProducerIdentity) -> None:
        self._accumulator.renew(identity)

    async def close(self, *, timeout_ms: int | None = None) -> None:
        """Flush, for `timeout_ms` at most, then end. What is not acknowledged by then fails with ClientClosed."""
        if self._is_closed:
            return
        self._is_closed = True
        try:
            async with asyncio.timeout(None if timeout_ms is None else timeout_ms / 1000):
                await self.flush()
        except TimeoutError:
            log.warning("the producer was closed with %d records not acknowledged", len(self._outstanding))
        finally:
            await self._end()

    async def _end(self) -> None:
        await self._tasks.close()
        await self._sender.close()
        closed = ClientClosed("the producer is closed")
        for topic in list(self._unplaced):
            self._fail_unplaced(topic, closed)
        while self._waiters:
            waiter = self._waiters.popleft()[1]
            if not waiter.done():
                waiter.set_exception(closed)

    # Room in the buffer

    def _prepare(
        self,
        value: bytes | None,
        key: bytes | None,
        headers: Sequence[tuple[str, bytes | None]],
        timestamp_ms: int | None,
    ) -> tuple[NewRecord, int]:
        if self._is_closed:
            raise ClientClosed("the producer is closed")
        for name, content in (("value", value), ("key", key)):
            if content is not None and not isinstance(content, bytes):
                raise TypeError(f"{name} must be bytes or None, not {type(content).__name__}")
        size_bytes = record_size_bytes_max(key, value, headers)
        if size_bytes > self._memory.limit_bytes:
            text = f"a record of {size_bytes} bytes can never fit into the buffer of {self._memory.limit_bytes}"
            raise KafkaError(ErrorCode.MESSAGE_TOO_LARGE, text)
        stamp_ms = self._client.clock.now_ms() if timestamp_ms is None else timestamp_ms
        return NewRecord(stamp_ms, key, value, tuple(headers)), size_bytes

    async def _reserve(self, size_bytes: int) -> None:
        """First come, first served: a large record is not overtaken for ever by small ones."""
        if not self._waiters and self._memory.try_reserve(size_bytes):
            return
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        entry = (size_bytes, waiter)
        self._waiters.append(entry)
        self._sender.wake()
        try:
            async with asyncio.timeout(self._max_block_ms / 1000):
                await waiter
        except TimeoutError:
            self._leave_line(entry)
            raise BufferExhausted(self._exhausted_text()) from None
        except asyncio.CancelledError:
            self._leave_line(entry)
            raise

    def _leave_line(self, entry: tuple[int, asyncio.Future[None]]) -> None:
        if entry in self._waiters:
            self._waiters.remove(entry)
        elif entry[1].done() and not entry[1].cancelled():
            self._release(entry[0])  # the room was given in the same turn of the loop

    def _release(self, size_bytes: int) -> None:
        self._memory.release(size_bytes)
        while self._waiters:
            wanted_bytes, waiter = self._waiters[0]
            # One that was cancelled in this turn of the loop has not left the line itself yet.
            if not waiter.done() and not self._memory.try_reserve(wanted_bytes):
                return
            self._waiters.popleft()
            if not waiter.done():
                waiter.set_result(None)

    def _exhausted_text(self) -> str:
        return (
            f"the producer's buffer of {self._memory.limit_bytes} bytes stayed full for {self._max_block_ms} ms: "
            "the brokers do not answer, or records come faster than they are taken"
        )

    def _is_hurried(self) -> bool:
        """Do not linger while somebody waits for the room or for the end."""
        return self._flush_count > 0 or bool(self._waiters) or self._is_closed

    # Placing

    def _accept(
        self, topic: str, record: NewRecord, partition: int | None, size_bytes: int, on_delivery: OnDelivery | None
    ) -> asyncio.Future[RecordMetadata]:
        self._start_once()
        future: asyncio.Future[RecordMetadata] = asyncio.get_running_loop().create_future()
        self._outstanding.add(future)
        future.add_done_callback(self._outstanding.discard)
        unplaced = _Unplaced(record, partition, size_bytes, _Delivery(future, record.timestamp_ms, on_delivery))
        view = self._client.metadata.topic(topic)
        if view is not None and topic not in self._unplaced:
            self._place(view, unplaced)
        else:
            self._hold(topic, unplaced)
        return future

    def _start_once(self) -> None:
        if not self._is_started:
            self._is_started = True
            self._sender.start()

    def _hold(self, topic: str, unplaced: _Unplaced) -> None:
        if topic in self._unplaced:
            self._unplaced[topic].append(unplaced)
            return
        self._unplaced[topic] = [unplaced]
        self._tasks.spawn(self._learn(topic), f"learn {topic}")

    async def _learn(self, topic: str) -> None:
        wait_ms = min(self._max_block_ms, self._client.config.unknown_topic_wait_ms)
        try:
            view = await self._client.topic(topic, wait_ms=wait_ms, may_create=self._auto_create_topics)
        except KafkaError as error:
            self._fail_unplaced(topic, error)
            return
        for unplaced in self._unplaced.pop(topic, ()):
            self._place(view, unplaced)

    def _fail_unplaced(self, topic: str, error: KafkaError) -> None:
        for unplaced in self._unplaced.pop(topic, ()):
            self._release(unplaced.size_bytes)
            unplaced.delivery.fail(error)

    def _place(self, view: TopicView, unplaced: _Unplaced) -> None:
        partition = self._choose(view, unplaced)
        if partition not in view.partitions:
            self._client.mark_stale(view.name)  # it may have grown since
            self._release(unplaced.size_bytes)
            text = f"topic {view.name!r} has {view.partition_count} partitions, there is no {partition}"
            unplaced.delivery.fail(UnknownTopic(text))
            return
        target = TopicPartition(view.name, partition)
        unplaced.delivery.target = target
        starts_batch = self._accumulator.queue(target).starts_batch(unplaced.size_bytes)
        self._accumulator.append(
            target,
            unplaced.record,
            unplaced.delivery,
            size_bytes=unplaced.size_bytes,
            now_ms=self._client.clock.monotonic_ms(),
        )
        if starts_batch:
            self._sender.wake()

    def _choose(self, view: TopicView, unplaced: _Unplaced) -> int:
        if unplaced.partition is not None:
            return unplaced.partition
        if unplaced.record.key is not None:
            return self._partitioner.for_key(unplaced.record.key, view.partition_count)
        current = self._partitioner.current(view.name, view.led)
        if current is not None:
            queue = self._accumulator.queue(TopicPartition(view.name, current))
            if not queue.starts_batch(unplaced.size_bytes):
                return current
        return self._partitioner.move_on(view.name, view.led, view.partition_count)
