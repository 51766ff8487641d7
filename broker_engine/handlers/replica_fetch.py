"""Fetch (key 1) from followers, on the controller's listener only: everything that is written, committed or not.

A fetch says what the follower has, so it moves the high watermark and the ISR (partition core). It is answered as soon
as there are records, an error or a diverging epoch; moved offsets ride along. A follower's next request on the same
connection ends the wait of the one before, so that a partition which it begins to follow is not kept waiting.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from dataclasses import dataclass, field

from broker_engine.errors import BrokerError, ErrorCode
from broker_engine.handlers.api import Api, Call, Scope
from broker_engine.handlers.fetch import MAX_VERSION, MAX_WAIT_MS_MAX, refuse
from broker_engine.partition.core import PartitionCore
from broker_engine.server.local_partition import LocalPartition
from broker_engine.server.replica_sessions import FINAL_EPOCH, FIRST_EPOCH, ReplicaSession, ReplicaTarget
from broker_engine.wire.messages.fetch import (
    EpochEndOffset,
    FetchableTopicResponse,
    FetchRequest,
    FetchResponse,
    PartitionData,
)


@dataclass(slots=True)
class _Read:
    answers: list[tuple[ReplicaTarget, PartitionData]] = field(default_factory=list)
    size_bytes: int = 0
    is_urgent: bool = False


def handle(request: FetchRequest, call: Call) -> FetchResponse | Awaitable[FetchResponse]:
    try:
        session = _session(request, call)
    except BrokerError as error:  # of the session, or of the broker's epoch: such an answer names no topics
        return FetchResponse(error_code=error.code)
    _take_notice(session, request, call)
    read = _read(session, request, call)
    if _is_enough(read, request) or request.max_wait_ms <= 0:
        return _respond(session, read)
    return _respond_later(session, request, call)


def _is_enough(read: _Read, request: FetchRequest) -> bool:
    return read.is_urgent or (read.size_bytes > 0 and read.size_bytes >= request.min_bytes)


async def _respond_later(session: ReplicaSession, request: FetchRequest, call: Call) -> FetchResponse:
    loop, turn, has_ended = asyncio.get_running_loop(), session.next_epoch, False
    deadline_s = loop.time() + min(request.max_wait_ms, MAX_WAIT_MS_MAX) / 1000
    try:
        while True:
            await session.wait(deadline_s - loop.time())
            read = _read(session, request, call)
            is_over = loop.time() >= deadline_s or session.next_epoch != turn
            if is_over or session.is_closed or _is_enough(read, request):
                has_ended = True
                return _respond(session, read)
            _release(read)
    finally:
        if not has_ended:  # the connection is gone, and the session with it
            call.broker.replica_sessions.close(session.id, session.broker_id)


# --- what the follower says


def _session(request: FetchRequest, call: Call) -> ReplicaSession:
    broker_id, broker_epoch = request.replica_state.replica_id, request.replica_state.replica_epoch
    _check_broker(broker_id, broker_epoch, call)
    sessions = call.broker.replica_sessions
    if request.session_epoch in (FIRST_EPOCH, FINAL_EPOCH):
        sessions.close(request.session_id, broker_id)
        return sessions.open(broker_id, broker_epoch)
    session = sessions.find(request.session_id, broker_id, broker_epoch)
    session.begin(request.session_epoch)
    return session


def _check_broker(broker_id: int, broker_epoch: int, call: Call) -> None:
    """Our image may be behind the follower's registration, but never ahead of its present life."""
    if broker_id < 0:
        raise BrokerError(ErrorCode.INVALID_REQUEST, "only followers fetch here")
    registered = call.broker.image.brokers.get(broker_id)
    if registered is not None and registered.epoch > broker_epoch:
        raise BrokerError(ErrorCode.STALE_BROKER_EPOCH)


def _take_notice(session: ReplicaSession, request: FetchRequest, call: Call) -> None:
    for forgotten in request.forgotten_topics_data:
        for index in forgotten.partitions:
            session.forget((forgotten.topic_id, index))
    now_ms = call.broker.clock.monotonic_ms()
    for topic in request.topics:
        for asked in topic.partitions:
            target = session.target((topic.topic_id, asked.partition), asked)
            target.watch(call.broker.partitions.find(topic.topic_id, asked.partition))
            try:
                _note_fetch(target, session, call, now_ms)
            except BrokerError as error:
                target.failure = error


def _note_fetch(target: ReplicaTarget, session: ReplicaSession, call: Call, now_ms: int) -> None:
    """Counts only where the logs agree up to what the follower has. BrokerError where it has to look elsewhere."""
    core, local, asked = _leader(target, call), target.local, target.asked
    assert local is not None
    target.diverging = diverging_epoch(local, asked.last_fetched_epoch, asked.fetch_offset)
    if target.diverging is not None:
        return
    if not local.log_start_offset <= asked.fetch_offset <= core.log_end_offset:
        raise BrokerError(ErrorCode.OFFSET_OUT_OF_RANGE)
    local.perform(
        core.on_follower_fetch(
            session.broker_id, session.broker_epoch, asked.fetch_offset, asked.durable_offset, now_ms
        )
    )


def _leader(target: ReplicaTarget, call: Call) -> PartitionCore:
    if target.local is None or target.local.leading is None:
        is_known = target.key[0] in call.broker.image.topics
        raise BrokerError(ErrorCode.NOT_LEADER_OR_FOLLOWER if is_known else ErrorCode.UNKNOWN_TOPIC_ID)
    core = target.local.leading
    if target.asked.current_leader_epoch < 0:
        raise BrokerError(ErrorCode.UNKNOWN_LEADER_EPOCH)
    core.check_leader_epoch(target.asked.current_leader_epoch)
    return core


def diverging_epoch(local: LocalPartition, last_fetched_epoch: int, fetch_offset: int) -> EpochEndOffset | None:
    """Where the follower's last epoch ends here, if it has more of it, or we have nothing of it."""
    if last_fetched_epoch < 0:
        return None
    epoch, end_offset = local.end_offset_for_epoch(last_fetched_epoch)
    if epoch < 0:
        raise BrokerError(ErrorCode.OFFSET_OUT_OF_RANGE)
    if epoch < last_fetched_epoch or end_offset < fetch_offset:
        return EpochEndOffset(epoch=epoch, end_offset=end_offset)
    return None


# --- what it is told


def _read(session: ReplicaSession, request: FetchRequest, call: Call) -> _Read:
    read, left_bytes = _Read(), request.max_bytes
    session.has_urgent_news = False
    for target in list(session.marked):
        data, size_bytes = _answer(target, call, left_bytes, at_least_one=read.size_bytes == 0)
        left_bytes, read.size_bytes = max(0, left_bytes - size_bytes), read.size_bytes + size_bytes
        if data is not None:
            read.is_urgent |= bool(data.error_code) or data.diverging_epoch.epoch >= 0
            read.answers.append((target, data))
        elif not _has_more(target):
            session.marked.pop(target, None)
    return read


def _answer(
    target: ReplicaTarget, call: Call, left_bytes: int, *, at_least_one: bool
) -> tuple[PartitionData | None, int]:
    """None where there is nothing to tell."""
    try:
        if target.failure is not None:
            raise target.failure
        core = _leader(target, call)
        local = target.local
        assert local is not None
        if target.diverging is not None:
            return _data(target, core, diverging=target.diverging), 0
        asked = target.asked
        has_more = not target.has_sent and asked.fetch_offset < core.log_end_offset and (left_bytes or at_least_one)
        is_throttled = bool(local.throttled_serving.values) and _is_throttled(target, local, core, call.broker.node_id)
        limit = call.broker.replication.serving_limit
        if has_more and not (is_throttled and limit.wait_ms()):
            bytes_max = min(asked.partition_max_bytes, left_bytes)
            read = local.read_for_replica(asked.fetch_offset, bytes_max=bytes_max, at_least_one=at_least_one)
            if read.size_bytes:
                if is_throttled:
                    limit.note(read.size_bytes)
                data = _data(target, core)
                data.records = read.ranges
                return data, read.size_bytes
    except BrokerError as error:
        return _failure(target, error), 0
    is_told = target.told_high_watermark == core.high_watermark and target.told_log_start == core.log_start_offset
    return (None if is_told else _data(target, core)), 0


def _is_throttled(target: ReplicaTarget, local: LocalPartition, core: PartitionCore, node_id: int) -> bool:
    """As in Kafka the list names those who serve, so this broker; whoever is in sync is not held back."""
    return target.session.broker_id not in core.isr and local.throttled_serving.holds(target.key[1], node_id)


def _has_more(target: ReplicaTarget) -> bool:
    core = target.local.leading if target.local is not None else None
    return core is not None and target.asked.fetch_offset < core.log_end_offset


def _data(target: ReplicaTarget, core: PartitionCore, diverging: EpochEndOffset | None = None) -> PartitionData:
    data = PartitionData(
        partition_index=target.key[1],
        high_watermark=core.high_watermark,
        last_stable_offset=core.last_stable_offset,
        log_start_offset=core.log_start_offset,
        aborted_transactions=None,
        records=[],
    )
    if diverging is not None:
        data.diverging_epoch = diverging
    return data


def _failure(target: ReplicaTarget, error: BrokerError) -> PartitionData:
    """Out of range is told with where our log starts: the follower begins anew there."""
    start_offset = target.local.log_start_offset if target.local is not None else -1
    return PartitionData(
        partition_index=target.key[1],
        error_code=error.code,
        high_watermark=-1,
        log_start_offset=start_offset,
        aborted_transactions=None,
        records=[],
    )


def _respond(session: ReplicaSession, read: _Read) -> FetchResponse:
    """Nothing awaits between the read and this, so the session notes exactly what is sent."""
    topics: dict[bytes, FetchableTopicResponse] = {}
    for target, data in read.answers:
        _note_told(session, target, data)
        topic_id = target.key[0]
        topic = topics.get(topic_id.bytes)
        if topic is None:
            topic = topics[topic_id.bytes] = FetchableTopicResponse(topic_id=topic_id, partitions=[])
        topic.partitions.append(data)  # type: ignore[attr-defined]
    return FetchResponse(session_id=session.id, responses=list(topics.values()))


def _note_told(session: ReplicaSession, target: ReplicaTarget, data: PartitionData) -> None:
    session.marked.pop(target, None)
    if data.error_code or data.diverging_epoch.epoch >= 0:
        return  # nothing more about it until the follower asks again
    target.told_high_watermark, target.told_log_start = data.high_watermark, data.log_start_offset
    if data.records:
        target.has_sent = True
    elif _has_more(target):
        session.marked[target] = None


def _release(read: _Read) -> None:
    for _, data in read.answers:
        for file_range in data.records or ():
            file_range.release()


API = Api(
    request=FetchRequest,
    scope=Scope.BROKERS,
    handle=handle,
    refuse=refuse,
    max_version=MAX_VERSION,
    is_next_allowed=True,
    is_cancelled_with_connection=True,
)
