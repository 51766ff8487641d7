"""Reads assigned partitions (groups come later): fetches ahead from all their leaders at once, within a bound.

One reader at a time: poll, seek and assign of one consumer are for one task; many consumers may share a client.
Not safe across threads. Left out: fetch sessions, follower fetching (KIP-392).
"""

from __future__ import annotations

import asyncio
import logging
from collections import defaultdict
from collections.abc import Iterable, Mapping
from types import TracebackType
from typing import Literal, Self

from broker_engine.client.client import Client
from broker_engine.client.config import BrokerAddress
from broker_engine.client.connection import Connection
from broker_engine.client.delivery import shows_old_metadata
from broker_engine.client.errors import ClientClosed, KafkaError, OffsetOutOfRange, error_for, known_code
from broker_engine.client.fetching import FetchedBatches, FetchSpot, Isolation, answers, fetch_request, version_limit
from broker_engine.client.model import FoundOffset, Record, Start, Timestamp, TopicPartition
from broker_engine.client.offsets import EARLIEST, LATEST, find_offsets
from broker_engine.client.positions import PartitionState
from broker_engine.client.tasks import TaskSet
from broker_engine.errors import ErrorCode
from broker_engine.wire.messages.fetch import API as FETCH
from broker_engine.wire.messages.fetch import FetchResponse, PartitionData

log = logging.getLogger(__name__)

OffsetReset = Literal["earliest", "latest", "error"]

_POLL_RECORDS_MAX = 500


class Consumer:
    def __init__(
        self,
        client: Client,
        *,
        max_wait_ms: int = 500,
        min_bytes: int = 1,
        max_bytes: int = 8 << 20,
        partition_max_bytes: int = 1 << 20,
        isolation: Isolation = "read_uncommitted",
        offset_reset: OffsetReset = "error",
    ) -> None:
        """`max_bytes` bounds one answer, and what is fetched ahead of the caller before fetching stops.

        `offset_reset` says what an offset outside of the log means: start over at an end, or raise OffsetOutOfRange.
        """
        self._client = client
        self._max_wait_ms = max_wait_ms
        self._min_bytes = min_bytes
        self._max_bytes = max_bytes
        self._partition_max_bytes = partition_max_bytes
        self._isolation: Isolation = isolation
        self._offset_reset = offset_reset
        self._tasks = TaskSet(f"consumer {client.config.client_id}")
        self._states: dict[TopicPartition, PartitionState] = {}
        self._connections: dict[BrokerAddress, Connection] = {}
        self._fetching: set[int] = set()
        self._is_resolving = False
        self._wake = asyncio.Event()
        self._arrived = asyncio.Event()
        self._is_started = self._is_closed = False

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    # What is read, and from where

    def assign(self, starts: Mapping[tuple[str, int], Start]) -> None:
        """Read exactly these partitions, each from its start. What was assigned before is forgotten."""
        self._states = {}
        for target, start in starts.items():
            self.seek(TopicPartition(*target), start, is_new=True)

    def seek(self, target: tuple[str, int], start: Start, *, is_new: bool = False) -> None:
        """Go on from `start`. What was fetched ahead is dropped."""
        partition = TopicPartition(*target)
        known = None if is_new else self._state(partition)
        state = PartitionState(partition, start)
        state.is_paused = known.is_paused if known is not None else False
        self._states[partition] = state
        self._wake.set()

    def pause(self, targets: Iterable[tuple[str, int]]) -> None:
        """Give out no more records of these, and fetch none, until resume."""
        for target in targets:
            self._state(target).is_paused = True

    def resume(self, targets: Iterable[tuple[str, int]]) -> None:
        for target in targets:
            self._state(target).is_paused = False
        self._wake.set()
        self._arrived.set()

    @property
    def assignment(self) -> tuple[TopicPartition, ...]:
        return tuple(self._states)

    @property
    def positions(self) -> dict[TopicPartition, int]:
        """The offset of the next record of each partition; without those whose start is still looked up."""
        return {target: state.position for target, state in self._states.items() if state.position is not None}

    @property
    def high_watermarks(self) -> dict[TopicPartition, int]:
        """As of the last fetch; without partitions that were not fetched yet."""
        return {target: state.high_watermark for target, state in self._states.items() if state.high_watermark >= 0}

    def _state(self, target: tuple[str, int]) -> PartitionState:
        state = self._states.get(TopicPartition(*target))
        if state is None:
            raise ValueError(f"{TopicPartition(*target)} is not assigned")
        return state

    # Reading

    async def poll(self, timeout_ms: int, max_records: int = _POLL_RECORDS_MAX) -> list[Record]:
        """Records in order per partition as soon as there are any; an empty list after `timeout_ms`.

        An error of a partition that does not pass by itself is raised here; the others go on with the next poll.
        """
        self._start_once()
        give_up_ms = self._client.clock.monotonic_ms() + timeout_ms
        while True:
            self._arrived.clear()
            records = self._take(max_records)
            if records:
                return records
            self._raise_first_error()
            left_ms = give_up_ms - self._client.clock.monotonic_ms()
            if left_ms <= 0:
                return []
            await _wait(self._arrived, left_ms)

    def _start_once(self) -> None:
        if self._is_closed:
            raise ClientClosed("the consumer is closed")
        if not self._is_started:
            self._is_started = True
            self._client.links.add_listener(self._wake.set)
            self._tasks.spawn(self._run(), "fetch")

    def _take(self, max_records: int) -> list[Record]:
        records: list[Record] = []
        for target, state in list(self._states.items()):
            if len(records) >= max_records:
                break
            if state.is_paused or state.error is not None:
                continue
            more = state.take(max_records - len(records))
            if more:
                records += more
                # Behind the others, so that a busy partition never starves a quiet one.
                self._states[target] = self._states.pop(target)
        self._wake.set()  # there may be room again
        return records

    def _raise_first_error(self) -> None:
        for state in self._states.values():
            if state.error is not None:
                error, state.error = state.error, None
                raise error

    async def close(self) -> None:
        """End the fetching and close this consumer's own connections."""
        if self._is_closed:
            return
        self._is_closed = True
        self._client.links.remove_listener(self._wake.set)
        await self._tasks.close()
        for connection in self._connections.values():
            connection.close()
        await asyncio.gather(*(connection.wait_closed() for connection in self._connections.values()))

    # Fetching ahead

    async def _run(self) -> None:
        while True:
            self._wake.clear()
            now_ms = self._client.clock.monotonic_ms()
            self._resolve_if_needed(now_ms)
            self._fetch_where_possible(now_ms)
            later = [state.retry_at_ms for state in self._states.values() if state.retry_at_ms > now_ms]
            await _wait(self._wake, min(later) - now_ms if later else None)

    def _fetch_where_possible(self, now_ms: int) -> None:
        if sum(state.buffered_bytes for state in self._states.values()) >= self._max_bytes:
            return
        by_leader: defaultdict[int, list[PartitionState]] = defaultdict(list)
        for state in self._states.values():
            if state.is_paused or state.error is not None or state.fetch_offset is None or state.retry_at_ms > now_ms:
                continue
            leader = self._client.metadata.leader(state.target)
            if leader is not None:
                by_leader[leader].append(state)
            elif self._client.metadata.topic(state.target.topic) is not None:
                self._back_off(state)
        for leader, states in by_leader.items():
            if leader not in self._fetching:
                self._fetching.add(leader)
                self._tasks.spawn(self._fetch(leader, states), f"fetch from {leader}")

    def _back_off(self, state: PartitionState) -> None:
        state.failure_count += 1
        wait_ms = self._client.retry_backoff_ms(state.failure_count)
        state.retry_at_ms = self._client.clock.monotonic_ms() + wait_ms
        self._client.mark_stale(state.target.topic)

    async def _fetch(self, leader: int, states: list[PartitionState]) -> None:
        try:
            spots = [self._spot(state) for state in states]
            response = await self._ask(leader, spots)
            if response.error_code != ErrorCode.NONE:
                raise error_for(response.error_code, None, "fetch")
            for spot, part in answers(response, spots):
                self._on_part(spot, part)
        except KafkaError as error:
            for state in states:
                self._on_error(state, error)
        except Exception as error:  # a bug: tell it whole, and do not leave the reader waiting
            log.exception("the consumer could not fetch")
            for state in states:
                self._on_error(state, KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, f"could not fetch: {error!r}"))
        finally:
            self._fetching.discard(leader)
            self._wake.set()

    def _spot(self, state: PartitionState) -> FetchSpot:
        topic, view = self._client.metadata.topic(state.target.topic), self._client.metadata.partition(state.target)
        assert topic is not None, "a partition with a leader is known"
        assert view is not None, "a partition with a leader is known"
        assert state.fetch_offset is not None, "only partitions with a position are fetched"
        return FetchSpot(state.target, topic.topic_id, state.fetch_offset, view.leader_epoch, self._partition_max_bytes)

    async def _ask(self, leader: int, spots: list[FetchSpot]) -> FetchResponse:
        connection = await self._connection(self._client.address_of(leader))
        request = fetch_request(
            spots,
            max_wait_ms=self._max_wait_ms,
            min_bytes=self._min_bytes,
            max_bytes=self._max_bytes,
            isolation=self._isolation,
        )
        return await connection.ask(
            request,
            FetchResponse,
            version=connection.version_of(FETCH, at_most=version_limit(spots)),
            timeout_ms=self._max_wait_ms + self._client.config.request_timeout_ms,
        )

    async def _connection(self, address: BrokerAddress) -> Connection:
        connection = self._connections.get(address)
        if connection is None or not connection.is_open:
            connection = self._connections[address] = await self._client.links.open(address)
        return connection

    def _on_part(self, spot: FetchSpot, part: PartitionData) -> None:
        state = self._states.get(spot.target)
        if state is None or state.fetch_offset != spot.offset:
            return  # assigned or sought anew meanwhile
        code = known_code(part.error_code)
        if code != ErrorCode.NONE:
            self._on_error(state, KafkaError(code, f"fetch from {spot.target} at offset {spot.offset}"))
            return
        state.failure_count = 0
        state.high_watermark = part.high_watermark
        state.last_stable_offset = part.last_stable_offset
        state.log_start_offset = part.log_start_offset
        chunk = FetchedBatches(
            spot,
            part,
            isolation=self._isolation,
            decompressed_bytes_max=self._client.config.decompressed_batch_bytes_max,
        )
        if chunk.size_bytes:
            state.add(chunk)
            self._arrived.set()

    def _on_error(self, state: PartitionState, error: KafkaError) -> None:
        if error.code == ErrorCode.OFFSET_OUT_OF_RANGE:
            self._on_out_of_range(state)
        elif error.retriable or shows_old_metadata(error.code):
            self._back_off(state)
        else:
            self._back_off(state)
            self._report(state, error)

    def _on_out_of_range(self, state: PartitionState) -> None:
        if state.buffered_bytes:
            self._back_off(state)  # what is here already is still good; the next fetch tells again
        elif self._offset_reset == "error":
            self._back_off(state)
            text = f"offset {state.fetch_offset} is not in {state.target}; seek, or choose an offset_reset"
            self._report(state, OffsetOutOfRange(text))
        else:
            state.start_over(self._offset_reset)

    def _report(self, state: PartitionState, error: KafkaError) -> None:
        state.error = error
        self._arrived.set()

    # Looking up where to start

    def _resolve_if_needed(self, now_ms: int) -> None:
        unresolved = [
            state for state in self._states.values() if self._is_unresolved(state) and state.retry_at_ms <= now_ms
        ]
        if unresolved and not self._is_resolving:
            self._is_resolving = True
            self._tasks.spawn(self._resolve(unresolved), "look up starts")

    def _is_unresolved(self, state: PartitionState) -> bool:
        is_known = self._client.metadata.topic(state.target.topic) is not None
        return state.error is None and (state.fetch_offset is None or not is_known)

    async def _resolve(self, states: list[PartitionState]) -> None:
        wanted = {state.target: _timestamp_ms(state.start) for state in states}
        try:
            found = await find_offsets(self._client, wanted, isolation=self._isolation)
            for state in states:
                self._on_found(state, found.get(state.target))
        finally:
            self._is_resolving = False
            self._wake.set()

    def _on_found(self, state: PartitionState, answer: FoundOffset | KafkaError | None) -> None:
        if isinstance(answer, FoundOffset):
            if state.fetch_offset is None and answer.offset < 0:
                state.start = "latest"  # no record is that young: wait for the first that comes
            elif state.fetch_offset is None:
                state.begin_at(answer.offset)
            return
        self._back_off(state)
        if answer is not None and not self._client.may_retry(answer):
            self._report(state, answer)


def _timestamp_ms(start: Start) -> int:
    if isinstance(start, Timestamp):
        return start.ms
    return EARLIEST if start == "earliest" else LATEST


async def _wait(event: asyncio.Event, timeout_ms: int | None) -> None:
    try:
        async with asyncio.timeout(None if timeout_ms is None else max(timeout_ms, 0) / 1000):
            await event.wait()
    except TimeoutError:
        return
