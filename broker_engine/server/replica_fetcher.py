"""One follower's side of replication: fetches from one leader broker, by one connection, all partitions of a lane.

Requests carry only what changed (an incremental session). Usually one is under way; a second one goes out at once when
there is something new to say, and the leader then answers the first. After an answer that was not cut short by its
limits the next request waits for the flush of what came, so that a long poll never begins with records that are not
durable; should that happen all the same, the end of the flush is news.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar
from uuid import UUID

from broker_engine.client.errors import ConnectionFailed
from broker_engine.clock import Clock
from broker_engine.config import BrokerConfig
from broker_engine.errors import BrokerError, ErrorCode
from broker_engine.log.retention import DeletedSegment
from broker_engine.partition.follower_core import FollowerCore
from broker_engine.server.complaint import Complaint
from broker_engine.server.following import (
    LowerPoints,
    Position,
    begin_anew,
    cut_where_logs_part,
    position_of,
    take_offsets,
    take_records,
)
from broker_engine.server.local_partition import LocalPartition
from broker_engine.server.replication_throttle import RateLimit
from broker_engine.server.supervisor import Supervisor
from broker_engine.wire.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    ForgottenTopic,
    PartitionData,
    ReplicaState,
)
from broker_engine.wire.schema import Message

log = logging.getLogger(__name__)

VERSION = 17
IN_FLIGHT_MAX = 2
_BACKOFF_MS_MIN = 20
_ANSWER_GRACE_MS = 5_000
_SESSION_ERRORS = frozenset(
    {
        ErrorCode.FETCH_SESSION_ID_NOT_FOUND,
        ErrorCode.INVALID_FETCH_SESSION_EPOCH,
        ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR,
    }
)

R = TypeVar("R", bound=Message)
Key = tuple[UUID, int]


class Asker(Protocol):
    """As much of Peers as a fetcher uses."""

    async def ask(
        self, node_id: int, message: Message, answer: type[R], *, lane: str, timeout_ms: int, version: int | None = None
    ) -> R: ...


@dataclass(frozen=True, slots=True)
class FetcherParts:
    """What all fetchers of a broker share."""

    node_id: int
    broker_epoch: Callable[[], int]
    peers: Asker
    clock: Clock
    config: BrokerConfig
    lower_points: LowerPoints
    cuts: Supervisor
    """Cuts are waited for when the broker stops, not cancelled."""
    limit: RateLimit
    """For throttled replicas."""
    on_corrupt: Callable[[int, LocalPartition], None] = lambda leader_id, local: None
    """What a leader sent does not verify."""


class Followed:
    __slots__ = ("complaint", "failure_count", "flush_end", "local", "retry", "sent")

    def __init__(self, local: LocalPartition) -> None:
        self.local = local
        self.sent: Position | None = None
        """As the leader was last told; None: it has to be told, whatever it knows."""
        self.flush_end = -1
        """The leader was told of records that are not durable: the end of the flush up to there is news."""
        self.failure_count = 0
        self.complaint = Complaint()
        """Why what the leader sent could not be taken."""
        self.retry: asyncio.TimerHandle | None = None

    def cancel_retry(self) -> None:
        if self.retry is not None:
            self.retry.cancel()
            self.retry = None

    def complain(self, error: BrokerError) -> None:
        if self.complaint.is_news(str(error)):
            log.error("%s-%d cannot take what its leader sent: %s", self.local.name, self.local.index, error)

    def took(self) -> None:
        self.failure_count = 0
        self.complaint.settle()


class ReplicaFetcher:
    def __init__(self, leader_id: int, lane: str, parts: FetcherParts) -> None:
        self._leader_id = leader_id
        self._lane = lane
        self._parts = parts
        self._followed: dict[Key, Followed] = {}
        self._pending: dict[Key, None] = {}
        """Partitions of which the leader does not know where we are."""
        self._forgotten: dict[Key, None] = {}
        self._in_flight: deque[asyncio.Task[FetchResponse]] = deque()
        self._session_id = 0
        self._session_epoch = 0
        self._left_session_id = 0
        """Of a session that went wrong: the leader is told that it is over."""
        self._unflushed_count = 0
        self._is_limited = False
        """The last answer was cut short: there is more."""
        self._failure_count = 0
        self._resume_at_ms = 0
        self._wake = asyncio.Event()

    def __len__(self) -> int:
        return len(self._followed)

    # --- what is followed

    def follow(self, local: LocalPartition) -> None:
        """From now on, or from now on in another term."""
        key = (local.topic_id, local.index)
        if key in self._forgotten and self._in_flight:
            # The log was given away, and came back empty. What the leader answers to who it knows would be taken by the
            # new one, which lacks all before it: one that does not know of the old log has to be asked.
            self._drop_session()
        if key in self._followed:
            self._followed[key].cancel_retry()
        self._followed[key] = Followed(local)
        self._forgotten.pop(key, None)
        self._note_news(key)

    def unfollow(self, local: LocalPartition) -> None:
        key = (local.topic_id, local.index)
        followed = self._followed.pop(key, None)
        if followed is not None:
            followed.cancel_retry()
            self._pending.pop(key, None)
            self._forgotten[key] = None

    def _note_news(self, key: Key) -> None:
        self._pending[key] = None
        self._wake.set()

    # --- the conversation

    async def run(self) -> None:
        try:
            while True:
                while self._in_flight and self._in_flight[0].done():
                    self._take_answer(self._in_flight.popleft())
                if self._may_send():
                    self._send()
                await self._wake.wait()
                self._wake.clear()
        finally:
            self._drop_session()

    def _may_send(self) -> bool:
        if not self._followed or self._parts.clock.monotonic_ms() < self._resume_at_ms:
            return False
        if not self._in_flight:
            return self._unflushed_count == 0 or self._is_limited
        has_room = len(self._in_flight) < IN_FLIGHT_MAX and self._session_id != 0
        return has_room and bool(self._pending) and self._unflushed_count == 0

    def _send(self) -> None:
        config = self._parts.config
        request = self._next_request()
        asking = self._parts.peers.ask(
            self._leader_id,
            request,
            FetchResponse,
            lane=self._lane,
            timeout_ms=config.replica_fetch_wait_max_ms + _ANSWER_GRACE_MS,
            version=VERSION,
        )
        task = asyncio.get_running_loop().create_task(asking)
        task.add_done_callback(lambda done: self._wake.set())
        self._in_flight.append(task)

    def _next_request(self) -> FetchRequest:
        config, parts = self._parts.config, self._parts
        keys, self._pending = (self._pending if self._session_id else dict.fromkeys(self._followed)), {}
        request = FetchRequest(
            replica_state=ReplicaState(replica_id=parts.node_id, replica_epoch=parts.broker_epoch()),
            # The first one of a session is answered at once: until its number is known, news would have to wait.
            max_wait_ms=config.replica_fetch_wait_max_ms if self._session_id else 0,
            min_bytes=config.replica_fetch_min_bytes,
            max_bytes=config.replica_fetch_response_max_bytes,
            session_id=self._session_id or self._left_session_id,
            session_epoch=self._session_epoch,
            topics=self._asked(keys),
            forgotten_topics_data=self._take_forgotten() if self._session_id else (),
        )
        self._session_epoch += 1
        self._is_limited = False
        return request

    def _asked(self, keys: dict[Key, None]) -> list[FetchTopic]:
        topics: dict[UUID, list[FetchPartition]] = {}
        for key in keys:
            followed = self._followed.get(key)
            core = None if followed is None else followed.local.following
            if followed is None or core is None or followed.local.busy is not None or followed.retry is not None:
                continue  # it comes back by itself
            position = position_of(followed.local, core)
            if position == followed.sent and self._session_id:
                continue
            followed.sent = position
            if core.is_flush_due:
                self._await_flush(key, followed, core)
            topics.setdefault(key[0], []).append(self._asked_partition(key[1], position))
        return [FetchTopic(topic_id=topic_id, partitions=partitions) for topic_id, partitions in topics.items()]

    def _await_flush(self, key: Key, followed: Followed, core: FollowerCore) -> None:
        """Also of what it has of a former term, as a leader that was deposed before its flush had ended."""
        if followed.flush_end != core.log_end_offset:
            followed.flush_end = core.log_end_offset
            followed.local.when_durable(core.log_end_offset, lambda code: self._on_told_durable(key, followed))

    def _on_told_durable(self, key: Key, followed: Followed) -> None:
        followed.flush_end = -1
        if self._followed.get(key) is followed:
            self._note_news(key)

    def _asked_partition(self, index: int, position: Position) -> FetchPartition:
        return FetchPartition(
            partition=index,
            current_leader_epoch=position.leader_epoch,
            fetch_offset=position.fetch_offset,
            last_fetched_epoch=position.last_fetched_epoch,
            log_start_offset=position.log_start_offset,
            partition_max_bytes=self._parts.config.replica_fetch_max_bytes,
            durable_offset=position.durable_offset,
        )

    def _take_forgotten(self) -> list[ForgottenTopic]:
        topics: dict[UUID, list[int]] = {}
        forgotten, self._forgotten = self._forgotten, {}
        for topic_id, index in forgotten:
            topics.setdefault(topic_id, []).append(index)
        return [ForgottenTopic(topic_id=topic_id, partitions=indexes) for topic_id, indexes in topics.items()]

    def _drop_session(self) -> None:
        """Begin with a full request; what is under way is of no use any more."""
        for task in self._in_flight:
            task.cancel()
        self._in_flight.clear()
        self._left_session_id = self._session_id or self._left_session_id
        self._session_id = self._session_epoch = 0
        self._forgotten.clear()
        for followed in self._followed.values():
            followed.sent = None

    # --- answers

    def _take_answer(self, task: asyncio.Task[FetchResponse]) -> None:
        try:
            response = task.result()
        except (ConnectionFailed, asyncio.CancelledError) as error:
            self._pause(f"no answer: {error}")
            return
        if response.error_code != ErrorCode.NONE:
            code = ErrorCode(response.error_code)
            if code in _SESSION_ERRORS:
                self._drop_session()
            else:
                self._pause(code.name)
            return
        self._failure_count = 0
        self._session_id = response.session_id
        for topic in response.responses:
            for data in topic.partitions:
                self._take_partition((topic.topic_id, data.partition_index), data)

    def _pause(self, reason: str) -> None:
        self._drop_session()
        self._failure_count += 1
        if self._failure_count == 1:
            log.info("fetching from broker %d waits: %s", self._leader_id, reason)
        wait_ms = self._backoff_ms(self._failure_count)
        self._resume_at_ms = self._parts.clock.monotonic_ms() + wait_ms
        # A moment later than that, so that the clock agrees.
        asyncio.get_running_loop().call_later((wait_ms + 1) / 1000, self._wake.set)

    def _backoff_ms(self, failure_count: int) -> int:
        return min(self._parts.config.replica_fetch_backoff_ms, _BACKOFF_MS_MIN << min(failure_count - 1, 10))

    def _take_partition(self, key: Key, data: PartitionData) -> None:
        followed = self._followed.get(key)
        core = None if followed is None else followed.local.following
        if followed is None or core is None or followed.local.busy is not None:
            return
        if followed.sent is None or followed.sent.leader_epoch != core.leader_epoch:
            return  # asked in another term: what it says counts no more
        if data.error_code != ErrorCode.NONE:
            self._on_error(key, followed, core, data)
        elif data.diverging_epoch.epoch >= 0:
            diverging = data.diverging_epoch
            points = self._parts.lower_points
            self._cut(
                key, followed, cut_where_logs_part(followed.local, core, diverging.epoch, diverging.end_offset, points)
            )
        else:
            self._take_data(key, followed, core, data)

    def _take_data(self, key: Key, followed: Followed, core: FollowerCore, data: PartitionData) -> None:
        local = followed.local
        try:
            if data.records:
                records = memoryview(data.records)
                is_cut = take_records(local, core, records, self._parts.clock.now_ms())
                self._is_limited |= is_cut or len(records) >= self._parts.config.replica_fetch_max_bytes
            deleted = take_offsets(local, core, data.high_watermark, data.log_start_offset)
        except BrokerError as error:
            followed.complain(error)
            if error.code is ErrorCode.CORRUPT_MESSAGE:
                self._parts.on_corrupt(self._leader_id, local)
            self._retry_later(key, followed)
            return
        followed.took()
        if deleted:
            self._parts.cuts.spawn(asyncio.to_thread(_remove, deleted), "remove segments")
        if data.records:
            self._pending[key] = None
            if local.throttled_fetching.values:
                self._throttle(key, followed, core, len(data.records))
            if core.is_flush_due:
                self._unflushed_count += 1
                local.when_durable(core.log_end_offset, lambda code: self._on_flushed(key))

    def _throttle(self, key: Key, followed: Followed, core: FollowerCore, size_bytes: int) -> None:
        if not self._is_throttled(key, followed, core):
            return
        self._parts.limit.note(size_bytes)
        wait_ms = self._parts.limit.wait_ms()
        if wait_ms > 0:
            self._forgotten[key] = None
            self._leave_alone(key, followed, wait_ms)

    def _is_throttled(self, key: Key, followed: Followed, core: FollowerCore) -> bool:
        own_id = self._parts.node_id
        return own_id not in core.isr and followed.local.throttled_fetching.holds(key[1], own_id)

    def _on_flushed(self, key: Key) -> None:
        self._unflushed_count -= 1
        if key in self._followed:
            self._pending[key] = None
        self._wake.set()

    def _on_error(self, key: Key, followed: Followed, core: FollowerCore, data: PartitionData) -> None:
        code = ErrorCode(data.error_code)
        if code is ErrorCode.OFFSET_OUT_OF_RANGE and data.log_start_offset >= 0:
            self._cut(key, followed, begin_anew(followed.local, core, data.log_start_offset, self._parts.lower_points))
            return
        log.debug("%s-%d from broker %d: %s", followed.local.name, followed.local.index, self._leader_id, code.name)
        self._retry_later(key, followed)

    def _retry_later(self, key: Key, followed: Followed) -> None:
        """Soon at first: after an election the leader may only have to hear of it."""
        followed.failure_count += 1
        self._leave_alone(key, followed, self._backoff_ms(followed.failure_count))

    def _leave_alone(self, key: Key, followed: Followed, wait_ms: int) -> None:
        followed.sent = None
        followed.cancel_retry()
        followed.retry = asyncio.get_running_loop().call_later(wait_ms / 1000, self._retry, key, followed)

    def _retry(self, key: Key, followed: Followed) -> None:
        followed.retry = None
        if self._followed.get(key) is not followed:
            return
        core = followed.local.following
        wait_ms = self._parts.limit.wait_ms() if core is not None and self._is_throttled(key, followed, core) else 0
        if wait_ms > 0:
            self._leave_alone(key, followed, wait_ms)
            return
        self._forgotten.pop(key, None)
        self._note_news(key)

    def _cut(self, key: Key, followed: Followed, cutting: Coroutine[Any, Any, None]) -> None:
        followed.sent = None

        async def run() -> None:
            try:
                await cutting
            except (BrokerError, OSError) as error:  # the checkpoint that goes before a cut wants room on the disk
                log.error("%s-%d cannot be cut: %s", followed.local.name, followed.local.index, error)
                self._retry_later(key, followed)
            finally:
                if self._followed.get(key) is followed:
                    self._note_news(key)

        self._parts.cuts.spawn(run(), f"cut {followed.local.name}-{followed.local.index}")


def _remove(deleted: list[DeletedSegment]) -> None:
    for segment in deleted:
        segment.remove()
