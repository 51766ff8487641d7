"""Fetch (key 1), versions 4-17. Long polls wait on the partitions they name; records go out as ranges of their files.

Byte limits are KIP-74's: the first batch of the first partition that has one is whole, after it the limits hold.
Sessions are KIP-227's (server/fetch_sessions.py): an incremental answer names a partition only for records, an error,
or a high watermark or log start that moved. Who came to the wrong broker is told the right one (KIP-951, from v16).
Readers of committed records get what is below the last stable offset, and a list of the aborted transactions in it.
Followers fetch by replica_fetch.py, on another listener. Left out: reads from followers (KIP-392).
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Iterable, Sequence
from dataclasses import dataclass
from dataclasses import field as dataclass_field
from uuid import UUID

from broker_engine.errors import BrokerError, ErrorCode
from broker_engine.handlers.api import Api, Call, Scope
from broker_engine.handlers.topics import check_leader_epoch, find_topic, hinted_nodes, led_partition
from broker_engine.log.files import FileRange
from broker_engine.log.txn_index import AbortedTransaction as Aborted
from broker_engine.metadata.image import TopicImage
from broker_engine.server.fetch_sessions import FINAL_EPOCH, FIRST_EPOCH, NO_SESSION, FetchSession, Target
from broker_engine.server.fetch_waiter import FetchWaiter
from broker_engine.server.local_partition import LocalPartition
from broker_engine.wire.messages.fetch import (
    AbortedTransaction,
    EpochEndOffset,
    FetchableTopicResponse,
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionData,
)

MAX_VERSION = 17
MAX_WAIT_MS_MAX = 300_000
_READ_COMMITTED = 1
_FIRST_VERSION_BY_TOPIC_ID = 13
_FIRST_VERSION_WITH_HINTS = 16
_FIRST_VERSION_WITH_LEADER = 12
_HINTED_CODES = frozenset({ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.FENCED_LEADER_EPOCH})


@dataclass(slots=True)
class _Plan:
    targets: list[Target]
    bytes_max: int
    is_committed_only: bool
    call: Call
    session: FetchSession | None = None
    """The session that this request goes on with: only what changed is answered."""
    wants_session: bool = False


@dataclass(slots=True)
class _Read:
    answers: list[tuple[Target, PartitionData]] = dataclass_field(default_factory=list)
    size_bytes: int = 0
    is_urgent: bool = False
    """An error or a diverging epoch ends the wait at once."""
    is_misdirected: bool = False
    """Some partition is led elsewhere."""

    def release(self) -> None:
        for _, data in self.answers:
            for file_range in data.records or ():
                file_range.release()


def handle(request: FetchRequest, call: Call) -> FetchResponse | Awaitable[FetchResponse]:
    if request.replica_id >= 0 or request.replica_state.replica_id >= 0:
        raise BrokerError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED, "replicas fetch from the quorum's listener")
    try:
        plan = _make_plan(request, call)
    except BrokerError as error:  # of the session: such an answer names no topics
        return FetchResponse(error_code=error.code)
    call.broker.fetch_positions.note(call.session, call.client_id, plan.targets)
    partitions = [target.partition for target in plan.targets if target.partition is not None]
    read = _read(plan)
    if read.is_urgent or read.size_bytes >= request.min_bytes or request.max_wait_ms <= 0 or not partitions:
        return _respond(plan, read)
    read.release()
    # Registered before this function returns: an append between the read and the wait would go unnoticed otherwise.
    wait_s = min(request.max_wait_ms, MAX_WAIT_MS_MAX) / 1000
    waiter = FetchWaiter(
        partitions,
        request.min_bytes - read.size_bytes,
        wait_s,
        asyncio.get_running_loop(),
        is_committed_only=plan.is_committed_only,
    )
    return _read_when_ready(plan, waiter, request.min_bytes)


def refuse(request: FetchRequest, error: BrokerError) -> FetchResponse:
    return FetchResponse(
        error_code=error.code,
        responses=[
            FetchableTopicResponse(
                topic=topic.topic,
                topic_id=topic.topic_id,
                partitions=[_failure(partition, error.code) for partition in topic.partitions],
            )
            for topic in request.topics
        ],
    )


async def _read_when_ready(plan: _Plan, waiter: FetchWaiter, bytes_min: int) -> FetchResponse:
    try:
        while True:
            await waiter.wait()
            read = _read(plan)
            if waiter.is_over or read.is_urgent or read.size_bytes >= bytes_min:
                return _respond(plan, read)
            read.release()
            waiter.rearm(bytes_min - read.size_bytes)
    finally:
        waiter.close()


# --- what to read


def _make_plan(request: FetchRequest, call: Call) -> _Plan:
    session = _continued_session(request, call)
    return _Plan(
        targets=_targets(request.topics, call) if session is None else list(session.targets.values()),
        bytes_max=min(request.max_bytes, call.broker.fetch_bytes_max),
        is_committed_only=request.isolation_level == _READ_COMMITTED,
        call=call,
        session=session,
        wants_session=request.session_epoch == FIRST_EPOCH and session is None,
    )


def _targets(topics: Sequence[FetchTopic], call: Call) -> list[Target]:
    targets = []
    for topic in topics:
        image, error = _find(topic.topic, topic.topic_id, call)
        for asked in topic.partitions:
            target = Target(topic.topic, topic.topic_id, asked)
            _settle(target, image, error, call)
            targets.append(target)
    return targets


def _find(topic: str, topic_id: UUID, call: Call) -> tuple[TopicImage | None, BrokerError | None]:
    try:
        return find_topic(call, topic, topic_id), None
    except BrokerError as error:
        return None, error


def _settle(target: Target, image: TopicImage | None, error: BrokerError | None, call: Call) -> None:
    target.partition, target.error = None, error
    if image is None:
        return
    try:
        target.partition = led_partition(call, image, target.asked.partition)
    except BrokerError as refusal:
        target.error = refusal


def _look_up(target: Target, call: Call) -> Target:
    _settle(target, *_find(target.topic, target.topic_id, call), call)
    return target


def _continued_session(request: FetchRequest, call: Call) -> FetchSession | None:
    """The session of an incremental request, brought up to date; None for a full one. BrokerError 70, 71 or 106."""
    sessions = call.broker.fetch_sessions
    if request.session_epoch in (FINAL_EPOCH, FIRST_EPOCH):
        if request.session_id != NO_SESSION:
            sessions.close(request.session_id, call.principal)
        return None
    session = sessions.find(request.session_id, call.principal, call.broker.clock.monotonic_ms())
    session.begin(request.session_epoch, uses_topic_ids=call.version >= _FIRST_VERSION_BY_TOPIC_ID)
    _update_session(session, request, call)
    if not session.targets:
        sessions.close(session.id, call.principal)
        return None
    return session


def _update_session(session: FetchSession, request: FetchRequest, call: Call) -> None:
    image = call.broker.image
    if session.image is not image:
        for target in session.targets.values():
            _look_up(target, call)
        session.image = image
    for topic in request.topics:
        for asked in topic.partitions:
            known = session.targets.get((topic.topic, topic.topic_id, asked.partition))
            if known is not None:
                known.asked = asked
            else:
                call.broker.fetch_sessions.add(session, _look_up(Target(topic.topic, topic.topic_id, asked), call))
    for forgotten in request.forgotten_topics_data:
        for index in forgotten.partitions:
            call.broker.fetch_sessions.forget(session, (forgotten.topic, forgotten.topic_id, index))


# --- what is answered


def _respond(plan: _Plan, read: _Read) -> FetchResponse:
    """Nothing awaits between the read and this, so the session notes exactly what is sent."""
    session = plan.session
    if session is None:
        response = FetchResponse(session_id=_open_session(plan, read), responses=_by_topic(read.answers))
    else:
        for target, data in read.answers:
            target.note_sent(data.error_code, data.high_watermark, data.log_start_offset)
            if data.records:
                session.move_to_end(target)
        session_id = session.id if session.targets else NO_SESSION
        response = FetchResponse(session_id=session_id, responses=_by_topic(read.answers))
    if read.is_misdirected and plan.call.version >= _FIRST_VERSION_WITH_HINTS:
        nodes = hinted_nodes(plan.call, (data.current_leader.leader_id for _, data in read.answers))
        response.node_endpoints = [NodeEndpoint(node_id=n.id, host=n.host, port=n.port, rack=n.rack) for n in nodes]
    return response


def _open_session(plan: _Plan, read: _Read) -> int:
    if not plan.wants_session:
        return NO_SESSION
    call = plan.call
    session = call.broker.fetch_sessions.open(
        call.principal,
        plan.targets,
        uses_topic_ids=call.version >= _FIRST_VERSION_BY_TOPIC_ID,
        now_ms=call.broker.clock.monotonic_ms(),
    )
    if session is None:
        return NO_SESSION
    for target, data in read.answers:
        target.note_sent(data.error_code, data.high_watermark, data.log_start_offset)
    return session.id


def _by_topic(answers: list[tuple[Target, PartitionData]]) -> list[FetchableTopicResponse]:
    topics: list[FetchableTopicResponse] = []
    partitions: list[PartitionData] = []
    last: Target | None = None
    for target, data in answers:
        if last is None or target.topic != last.topic or target.topic_id != last.topic_id:
            partitions = []
            topics.append(FetchableTopicResponse(topic=target.topic, topic_id=target.topic_id, partitions=partitions))
            last = target
        partitions.append(data)
    return topics


def _read(plan: _Plan) -> _Read:
    read, left_bytes = _Read(), plan.bytes_max
    is_incremental = plan.session is not None
    for target in plan.targets:
        if is_incremental and _is_quiet(target, plan):
            continue
        data, size_bytes = _read_partition(target, plan, left_bytes, is_first=read.size_bytes == 0)
        left_bytes, read.size_bytes = max(0, left_bytes - size_bytes), read.size_bytes + size_bytes
        if data.error_code or data.diverging_epoch.epoch >= 0:
            read.is_urgent = True
            read.is_misdirected |= data.error_code in _HINTED_CODES
        elif is_incremental and not size_bytes and _is_told(target, data):
            continue
        read.answers.append((target, data))
    return read


def _is_quiet(target: Target, plan: _Plan) -> bool:
    """Nothing to read and nothing to tell, seen without reading: most partitions of a large session, most of the
    time.
    """
    partition, asked = target.partition, target.asked
    if partition is None or partition.leading is None:
        return False
    end_offset = partition.last_stable_offset if plan.is_committed_only else partition.high_watermark
    return (
        asked.fetch_offset == end_offset
        and target.high_watermark == partition.high_watermark
        and target.log_start_offset == partition.log_start_offset
        and asked.current_leader_epoch in (-1, partition.leader_epoch)
        and asked.last_fetched_epoch in (-1, partition.leader_epoch)
    )


def _is_told(target: Target, data: PartitionData) -> bool:
    return target.high_watermark == data.high_watermark and target.log_start_offset == data.log_start_offset


def _read_partition(target: Target, plan: _Plan, left_bytes: int, *, is_first: bool) -> tuple[PartitionData, int]:
    asked, partition = target.asked, target.partition
    if partition is None:
        assert target.error is not None
        return _refused(target, plan, target.error), 0
    try:
        check_leader_epoch(partition, asked.current_leader_epoch)
        diverging = _diverging_epoch(partition, asked)
        if diverging is not None:
            return _with_offsets(asked, partition, plan, [], diverging), 0
        read = partition.read(
            asked.fetch_offset,
            bytes_max=max(0, min(asked.partition_max_bytes, left_bytes)),
            is_committed_only=plan.is_committed_only,
            at_least_one=is_first,
        )
    except BrokerError as error:
        return _refused(target, plan, error), 0
    data = _with_offsets(asked, partition, plan, read.ranges)
    if plan.is_committed_only and read.ranges:
        try:
            data.aborted_transactions = _aborted(partition.aborted_in(read, asked.fetch_offset))
        except BrokerError as error:
            read.release()
            return _refused(target, plan, error), 0
    return data, read.size_bytes


def _aborted(transactions: Iterable[Aborted]) -> list[AbortedTransaction]:
    return [AbortedTransaction(producer_id=each.producer_id, first_offset=each.first_offset) for each in transactions]


def _diverging_epoch(partition: LocalPartition, asked: FetchPartition) -> EpochEndOffset | None:
    """Where the client's last fetched epoch ends here, if it has read beyond that."""
    if asked.last_fetched_epoch < 0:
        return None
    epoch, end_offset = partition.end_offset_for_epoch(asked.last_fetched_epoch)
    if epoch < 0:
        raise BrokerError(ErrorCode.OFFSET_OUT_OF_RANGE)
    if epoch < asked.last_fetched_epoch or end_offset < asked.fetch_offset:
        return EpochEndOffset(epoch=epoch, end_offset=end_offset)
    return None


def _with_offsets(
    asked: FetchPartition,
    partition: LocalPartition,
    plan: _Plan,
    records: list[FileRange],
    diverging: EpochEndOffset | None = None,
) -> PartitionData:
    data = PartitionData(
        partition_index=asked.partition,
        high_watermark=partition.high_watermark,
        last_stable_offset=partition.last_stable_offset,
        log_start_offset=partition.log_start_offset,
        aborted_transactions=[] if plan.is_committed_only else None,
        records=records,
    )
    if diverging is not None:
        data.diverging_epoch = diverging
    return data


def _refused(target: Target, plan: _Plan, error: BrokerError) -> PartitionData:
    data = _failure(target.asked, error.code)
    if error.code in _HINTED_CODES and plan.call.version >= _FIRST_VERSION_WITH_LEADER:
        topic, _ = _find(target.topic, target.topic_id, plan.call)
        state = None if topic is None else topic.partitions.get(target.asked.partition)
        if state is not None:
            data.current_leader = LeaderIdAndEpoch(leader_id=state.leader, leader_epoch=state.leader_epoch)
    return data


def _failure(asked: FetchPartition, code: ErrorCode) -> PartitionData:
    return PartitionData(
        partition_index=asked.partition, error_code=code, high_watermark=-1, aborted_transactions=None, records=[]
    )


API = Api(
    request=FetchRequest,
    scope=Scope.TOPICS,
    handle=handle,
    refuse=refuse,
    max_version=MAX_VERSION,
    is_cancelled_with_connection=True,
)
