"""Fetch (key 1), versions 4-17. Long polls wait on the partitions they name; records go out as ranges of their files.

Byte limits are KIP-74's: the first batch of the first partition that has one is whole, after it the limits hold.
Left out: fetch sessions (every answer says session 0, so clients send full requests), followers' fetches and rack-aware
reads (with replication), aborted transactions (with transactions).
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Sequence
from dataclasses import dataclass

from broker_engine.errors import BrokerError, ErrorCode
from broker_engine.handlers.api import Api, Call, Scope
from broker_engine.handlers.topics import check_leader_epoch, find_topic, led_partition
from broker_engine.log.files import FileRange
from broker_engine.server.fetch_waiter import FetchWaiter
from broker_engine.server.local_partition import LocalPartition
from broker_engine.wire.messages.fetch import (
    EpochEndOffset,
    FetchableTopicResponse,
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    LeaderIdAndEpoch,
    PartitionData,
)

MAX_VERSION = 17
MAX_WAIT_MS_MAX = 300_000
_READ_COMMITTED = 1
_FIRST_VERSION_WITH_SESSION_ERROR = 7


@dataclass(slots=True)
class _Target:
    """One partition of the request, looked up once."""

    asked: FetchPartition
    partition: LocalPartition | None
    error: BrokerError | None = None


@dataclass(slots=True)
class _Plan:
    topics: Sequence[tuple[FetchTopic, list[_Target]]]
    bytes_max: int
    is_committed_only: bool
    version: int


@dataclass(slots=True)
class _Read:
    response: FetchResponse
    size_bytes: int
    is_urgent: bool
    """An error or a diverging epoch ends the wait at once."""

    def release(self) -> None:
        for topic in self.response.responses:
            for partition in topic.partitions:
                for file_range in partition.records or ():
                    file_range.release()


def handle(request: FetchRequest, call: Call) -> FetchResponse | Awaitable[FetchResponse]:
    if request.replica_id >= 0 or request.replica_state.replica_id >= 0:
        raise BrokerError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED, "replicas fetch from the quorum's listener")
    if request.session_epoch > 0 and call.version >= _FIRST_VERSION_WITH_SESSION_ERROR:
        return FetchResponse(error_code=ErrorCode.FETCH_SESSION_ID_NOT_FOUND)
    plan = _make_plan(request, call)
    partitions = [target.partition for _, targets in plan.topics for target in targets if target.partition is not None]
    read = _read(plan)
    if read.is_urgent or read.size_bytes >= request.min_bytes or request.max_wait_ms <= 0 or not partitions:
        return read.response
    read.release()
    # Registered before this function returns: an append between the read and the wait would go unnoticed otherwise.
    wait_s = min(request.max_wait_ms, MAX_WAIT_MS_MAX) / 1000
    waiter = FetchWaiter(partitions, request.min_bytes - read.size_bytes, wait_s, asyncio.get_running_loop())
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
                return read.response
            read.release()
            waiter.rearm(bytes_min - read.size_bytes)
    finally:
        waiter.close()


def _make_plan(request: FetchRequest, call: Call) -> _Plan:
    return _Plan(
        topics=[(topic, _targets(topic, call)) for topic in request.topics],
        bytes_max=min(request.max_bytes, call.broker.fetch_bytes_max),
        is_committed_only=request.isolation_level == _READ_COMMITTED,
        version=call.version,
    )


def _targets(topic: FetchTopic, call: Call) -> list[_Target]:
    try:
        image = find_topic(call, topic.topic, topic.topic_id)
    except BrokerError as error:
        return [_Target(asked, None, error) for asked in topic.partitions]
    targets = []
    for asked in topic.partitions:
        try:
            targets.append(_Target(asked, led_partition(call, image, asked.partition)))
        except BrokerError as error:
            targets.append(_Target(asked, None, error))
    return targets


def _read(plan: _Plan) -> _Read:
    left_bytes, is_urgent = plan.bytes_max, False
    total_bytes = 0
    topics = []
    for topic, targets in plan.topics:
        answers = []
        for target in targets:
            data, size_bytes = _read_partition(target, plan, left_bytes, is_first=total_bytes == 0)
            left_bytes, total_bytes = max(0, left_bytes - size_bytes), total_bytes + size_bytes
            is_urgent = is_urgent or data.error_code != ErrorCode.NONE or data.diverging_epoch.epoch >= 0
            answers.append(data)
        topics.append(FetchableTopicResponse(topic=topic.topic, topic_id=topic.topic_id, partitions=answers))
    return _Read(FetchResponse(responses=topics), total_bytes, is_urgent)


def _read_partition(target: _Target, plan: _Plan, left_bytes: int, *, is_first: bool) -> tuple[PartitionData, int]:
    asked, partition = target.asked, target.partition
    if partition is None:
        assert target.error is not None
        return _failure(asked, target.error.code), 0
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
        return _fenced(asked, partition, plan, error), 0
    return _with_offsets(asked, partition, plan, read.ranges), read.size_bytes


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


def _fenced(asked: FetchPartition, partition: LocalPartition, plan: _Plan, error: BrokerError) -> PartitionData:
    data = _failure(asked, error.code)
    if error.code is ErrorCode.FENCED_LEADER_EPOCH and plan.version >= 12:
        data.current_leader = LeaderIdAndEpoch(leader_id=partition.leader_id, leader_epoch=partition.leader_epoch)
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
