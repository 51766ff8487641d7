"""Carries batches from the accumulator to the brokers and their answers back. One task per producer.

Left out: the leader hints of KIP-951 in answers; a moved leader costs one metadata request.
"""

from __future__ import annotations

import asyncio
import logging
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Protocol
from uuid import UUID

from broker_engine.client.accumulator import Accumulator
from broker_engine.client.batches import IN_FLIGHT_BATCHES_MAX, PartitionQueue, ProducerBatch, ProducerIdentity
from broker_engine.client.client import Client
from broker_engine.client.connection import Connection
from broker_engine.client.delivery import Verdict, judge, note_whereabouts, shows_old_metadata
from broker_engine.client.errors import ClientClosed, DeliveryTimedOut, KafkaError, error_for, known_code
from broker_engine.client.model import TopicPartition
from broker_engine.client.tasks import TaskSet
from broker_engine.errors import ErrorCode
from broker_engine.ids import NO_TOPIC_ID
from broker_engine.wire.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from broker_engine.wire.messages.produce import API as PRODUCE
from broker_engine.wire.messages.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from broker_engine.wire.schema import Message

log = logging.getLogger(__name__)

_VERSION_BY_NAME_MAX = 12
_VERSION_WITHOUT_ADDING_MAX = 11
"""In a transaction of version 1: with a later one a batch that comes late would begin the transaction anew."""
_REQUESTS_IN_FLIGHT_MAX = IN_FLIGHT_BATCHES_MAX
_TRANSACTION_TIMEOUT_MS_MAX = 2**31 - 1

Batches = dict[TopicPartition, ProducerBatch]


@dataclass(frozen=True, slots=True)
class SenderConfig:
    acks: int
    is_idempotent: bool
    delivery_timeout_ms: int
    request_size_bytes_max: int


class Gate(Protocol):
    """A transaction, as the sender sees it."""

    transactional_id: str
    identity: ProducerIdentity | None
    error: KafkaError | None
    """Set: what has not left yet fails with it."""
    adds_by_sending: bool
    """Batches add their partition to the transaction (transaction version 2)."""

    def admits(self, target: TopicPartition) -> bool:
        """May batches leave for this partition? If not, the gate wakes the sender when they may."""
        ...

    def on_failed(self, error: KafkaError) -> None: ...


@dataclass(frozen=True, slots=True)
class _Answer:
    """What became of one batch. The offset is -1 where nobody said it."""

    code: ErrorCode
    message: str | None = None
    base_offset: int = -1
    log_append_time_ms: int = -1


class Sender:
    def __init__(
        self,
        client: Client,
        accumulator: Accumulator,
        config: SenderConfig,
        *,
        on_released: Callable[[int], None],
        is_hurried: Callable[[], bool],
        gate: Gate | None = None,
    ) -> None:
        self._client = client
        self._gate = gate
        self._accumulator = accumulator
        self._config = config
        self._on_released = on_released
        self._is_hurried = is_hurried
        self._tasks = TaskSet(f"producer {client.config.client_id}")
        self._wake = asyncio.Event()
        self._is_closed = False
        self._identity: ProducerIdentity | None = None
        self._identifying: asyncio.Task[None] | None = None
        self._in_flight: defaultdict[Connection, int] = defaultdict(int)

    def start(self) -> None:
        self._client.links.add_listener(self.wake)
        self._tasks.spawn(self._run(), "sender")

    def wake(self) -> None:
        self._wake.set()

    async def close(self) -> None:
        """End now: what is not acknowledged fails."""
        self._is_closed = True
        self._client.links.remove_listener(self.wake)
        await self._tasks.close()
        for batch in self._accumulator.drop_all():
            self._fail(batch, ClientClosed("the producer was closed before the record was acknowledged"))

    async def _run(self) -> None:
        while True:
            self._wake.clear()
            next_ms = self._step_or_fail(self._client.clock.monotonic_ms())
            try:
                async with asyncio.timeout(self._seconds_until(next_ms)):
                    await self._wake.wait()
            except TimeoutError:
                continue

    def _step_or_fail(self, now_ms: int) -> int | None:
        try:
            return self._step(now_ms)
        except Exception as error:  # a bug: tell it whole, and leave nobody waiting for an answer that cannot come
            log.exception("the producer could not send")
            self._drop_waiting(KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, f"the producer could not send: {error!r}"))
            return None

    def _drop_waiting(self, error: KafkaError) -> None:
        for batch in self._accumulator.drop_waiting():
            self._fail(batch, error)

    def _seconds_until(self, next_ms: int | None) -> float:
        # Once a second at least, because batches that nobody can send still have to expire.
        left_ms = 1_000 if next_ms is None else min(next_ms - self._client.clock.monotonic_ms(), 1_000)
        return max(left_ms, 0) / 1000

    def _step(self, now_ms: int) -> int | None:
        """Send all that may leave. Returns when to look again."""
        for batch in self._accumulator.expire(now_ms, self._config.delivery_timeout_ms):
            self._fail(batch, self._expired(batch))
        if self._gate is not None and self._gate.error is not None:
            self._drop_waiting(self._gate.error)
        due, next_ms = self._accumulator.due(now_ms, without_linger=self._is_hurried())
        waits = [] if next_ms is None else [next_ms]
        by_leader: defaultdict[int | None, list[PartitionQueue]] = defaultdict(list)
        for queue in due:
            if self._has_identity(queue) and (self._gate is None or self._gate.admits(queue.target)):
                by_leader[self._client.metadata.leader(queue.target)].append(queue)
        for leaderless in by_leader.pop(None, ()):
            self._client.mark_stale(leaderless.target.topic)
            waits.append(now_ms + self._client.config.retry_backoff_ms)
        for leader, queues in by_leader.items():
            assert leader is not None, "the leaderless are out already"
            waits += self._serve(leader, [queue for queue in queues if queue.may_go_to(leader)], now_ms)
        return min(waits, default=None)

    def _serve(self, leader: int, queues: list[PartitionQueue], now_ms: int) -> list[int]:
        """Send to one broker as far as its window allows. Returns a time to look again, if nobody would wake us."""
        link = self._client.links.link(self._client.address_of(leader))
        connection = link.ready()
        if connection is None:
            return [] if link.is_dialing else [link.retry_at_ms]
        while queues and self._in_flight[connection] < _REQUESTS_IN_FLIGHT_MAX:
            batches = self._take(leader, queues)
            self._send(connection, batches)
            queues = [queue for queue in queues if self._is_due(queue, now_ms)]
        return []

    def _is_due(self, queue: PartitionQueue, now_ms: int) -> bool:
        return self._accumulator.is_due(queue, now_ms, without_linger=self._is_hurried())

    def _take(self, leader: int, queues: Iterable[PartitionQueue]) -> Batches:
        """One batch of each partition, until the request is full."""
        taken: Batches = {}
        size_bytes = 0
        for queue in queues:
            batch = queue.take(leader)
            taken[queue.target] = batch
            self._accumulator.serve_last(queue)
            size_bytes += len(batch.encode())
            if size_bytes >= self._config.request_size_bytes_max:
                break
        return taken

    def _send(self, connection: Connection, batches: Batches) -> None:
        topic_ids = {target.topic: self._topic_id(target.topic) for target in batches}
        try:
            version = connection.version_of(PRODUCE, at_most=self._version_max(topic_ids))
            request = self._request(batches, topic_ids)
            if self._config.acks == 0:
                connection.send_unanswered(request, version=version)
                self._deliver_unanswered(batches)
                return
        except KafkaError as error:
            self._settle_all(batches.values(), error)
            return
        self._in_flight[connection] += 1
        future = connection.send(request, version=version)
        future.add_done_callback(partial(self._on_answer, connection, batches, topic_ids))

    def _version_max(self, topic_ids: dict[str, UUID]) -> int | None:
        if self._gate is not None and not self._gate.adds_by_sending:
            return _VERSION_WITHOUT_ADDING_MAX
        return _VERSION_BY_NAME_MAX if NO_TOPIC_ID in topic_ids.values() else None

    def _topic_id(self, topic: str) -> UUID:
        view = self._client.metadata.topic(topic)
        return view.topic_id if view is not None else NO_TOPIC_ID

    def _request(self, batches: Batches, topic_ids: dict[str, UUID]) -> ProduceRequest:
        parts: defaultdict[str, list[PartitionProduceData]] = defaultdict(list)
        for target, batch in batches.items():
            parts[target.topic].append(PartitionProduceData(index=target.partition, records=batch.encode()))
        return ProduceRequest(
            transactional_id=None if self._gate is None else self._gate.transactional_id,
            acks=self._config.acks,
            timeout_ms=self._client.config.request_timeout_ms,
            topic_data=[
                TopicProduceData(name=name, topic_id=topic_ids[name], partition_data=data)
                for name, data in parts.items()
            ],
        )

    def _deliver_unanswered(self, batches: Batches) -> None:
        for batch in batches.values():
            self._settle(batch, _Answer(ErrorCode.NONE))

    def _on_answer(
        self,
        connection: Connection,
        batches: Batches,
        topic_ids: dict[str, UUID],
        future: asyncio.Future[Message],
    ) -> None:
        if self._is_closed:
            return
        self._in_flight[connection] -= 1
        if not connection.is_open and self._in_flight[connection] == 0:
            del self._in_flight[connection]
        error = future.exception()
        if isinstance(error, KafkaError):
            self._settle_all(batches.values(), error)
        else:
            response = future.result()
            assert isinstance(response, ProduceResponse), "Produce is answered by ProduceResponse"
            self._settle_answered(dict(batches), topic_ids, response)
        self.wake()

    def _settle_answered(self, batches: Batches, topic_ids: dict[str, UUID], response: ProduceResponse) -> None:
        for target, answer in _answers(response, topic_ids):
            batch = batches.pop(target, None)
            if batch is not None:
                self._settle(batch, answer)
        missing = KafkaError(ErrorCode.NETWORK_EXCEPTION, "the broker's answer does not speak of this partition")
        self._settle_all(batches.values(), missing)

    def _settle_all(self, batches: Iterable[ProducerBatch], error: KafkaError) -> None:
        for batch in batches:
            self._settle(batch, _Answer(error.code, error.message))

    def _settle(self, batch: ProducerBatch, answer: _Answer) -> None:
        now_ms = self._client.clock.monotonic_ms()
        queue = self._accumulator.queue(batch.target)
        is_expired = now_ms - batch.created_ms >= self._config.delivery_timeout_ms
        if shows_old_metadata(answer.code):
            self._client.mark_stale(batch.target.topic)
        note_whereabouts(batch, answer.code)
        match judge(answer.code, batch, queue, is_expired=is_expired):
            case Verdict.DELIVERED:
                queue.finish(batch)
                self._on_released(batch.reserved_bytes)
                batch.succeed(answer.base_offset, answer.log_append_time_ms)
            case Verdict.SPLIT:
                queue.split(batch)
            case Verdict.FAIL:
                queue.give_up(batch)
                self._fail(batch, self._reason(batch, answer))
            case verdict:
                retry_at_ms = now_ms + self._client.retry_backoff_ms(batch.attempts)
                queue.retry(batch, retry_at_ms, in_new_epoch=verdict is Verdict.RETRY_IN_NEW_EPOCH)

    def _reason(self, batch: ProducerBatch, answer: _Answer) -> KafkaError:
        if answer.code.is_retriable:
            return self._expired(batch, answer.code)
        return error_for(answer.code, answer.message, f"record for {batch.target}")

    def _expired(self, batch: ProducerBatch, code: ErrorCode | None = None) -> KafkaError:
        why = f"; the last answer was {code.name}" if code is not None else ""
        leader = self._client.metadata.leader(batch.target)
        if leader is not None:
            last_error = self._client.links.link(self._client.address_of(leader)).last_error
            why += f"; {last_error.message}" if last_error is not None else ""
        elif code is None:
            why = "; the partition has no leader"
        text = f"record for {batch.target} was not acknowledged within {self._config.delivery_timeout_ms} ms{why}"
        return DeliveryTimedOut(text)

    def _fail(self, batch: ProducerBatch, error: KafkaError) -> None:
        log.warning("%d records for %s failed: %s", batch.record_count, batch.target, error)
        self._on_released(batch.reserved_bytes)
        if self._gate is not None:
            self._gate.on_failed(error)
        batch.fail(error)

    # The producer id

    def _has_identity(self, queue: PartitionQueue) -> bool:
        if not queue.needs_identity:
            return True
        if self._gate is not None:
            assert self._gate.identity is not None, "nothing is sent before init()"
            queue.set_identity(self._gate.identity)
            return True
        if self._identity is not None and self._identity.producer_id != queue.used_up_producer_id:
            queue.set_identity(self._identity)
            return True
        if self._identifying is None:
            self._identifying = self._tasks.spawn(self._identify(), "producer id")
        return False

    async def _identify(self) -> None:
        """Get a producer id. Whatever comes, the next step of the loop sees it or asks again."""
        try:
            self._identity = await self._ask_identity()
        except KafkaError as error:
            if not error.retriable:
                self._drop_waiting(error)
            else:
                await asyncio.sleep(self._client.config.retry_backoff_ms / 1000)
        finally:
            self._identifying = None
            self.wake()

    async def _ask_identity(self) -> ProducerIdentity:
        request = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=_TRANSACTION_TIMEOUT_MS_MAX)
        response = await self._client.ask_any(request, InitProducerIdResponse)
        if response.error_code != ErrorCode.NONE:
            raise error_for(response.error_code, None, "a producer id for idempotent sending")
        return ProducerIdentity(response.producer_id, response.producer_epoch)


def _answers(response: ProduceResponse, topic_ids: dict[str, UUID]) -> Iterator[tuple[TopicPartition, _Answer]]:
    names = {topic_id: name for name, topic_id in topic_ids.items()}
    for topic in response.responses:
        name = topic.name or names.get(topic.topic_id, "")
        for part in topic.partition_responses:
            code = known_code(part.error_code)
            base_offset = part.base_offset if code == ErrorCode.NONE else -1
            answer = _Answer(code, _message(part), base_offset, part.log_append_time_ms)
            yield TopicPartition(name, part.index), answer


def _message(part: PartitionProduceResponse) -> str | None:
    details = [f"record {one.batch_index}: {one.batch_index_error_message}" for one in part.record_errors]
    return "; ".join([part.error_message or "", *details]).strip("; ") or None
