"""Thousands of group members that do nothing but heartbeat, each on a connection of its own, by our codec on asyncio.

They join in groups of a hundred, and beat at the pace of real clients: every 3 s in classic groups (librdkafka's and
Java's default), at the interval that the broker names in KIP-848 groups.
"""

from __future__ import annotations

import asyncio
import resource
import struct
import time
import uuid
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import uvloop

from benchmarks.loads.result import Beaten
from benchmarks.loads.rpc import Connection, request_frame
from benchmarks.process import usage
from broker_engine.errors import ErrorCode
from broker_engine.wire.framing import parse_response
from broker_engine.wire.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    HeartbeatTopicPartitions,
)
from broker_engine.wire.messages.find_coordinator import FindCoordinatorRequest
from broker_engine.wire.messages.heartbeat import HeartbeatRequest
from broker_engine.wire.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from broker_engine.wire.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from broker_engine.wire.schema import Message

GROUP_SIZE = 100
CLASSIC_INTERVAL_S = 3.0
SESSION_MS = 45_000
READY_TIMEOUT_S = 300.0
RETRY_S = 0.1
FILES = 16_384
JOIN_VERSION, SYNC_VERSION, HEARTBEAT_VERSION, CONSUMER_VERSION = 5, 3, 3, 0
RETRIABLE = {ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.NOT_COORDINATOR}


def beat(port: int, pid: int, topic: str, *, protocol: str, member_count: int, seconds: float) -> Beaten:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, min(FILES, hard)), hard))
    _wait_for_coordinator(port)
    kind = ClassicMember if protocol == "classic" else ConsumerMember
    members = [kind(port, f"beat-{protocol}-{number // GROUP_SIZE}", topic) for number in range(member_count)]
    return uvloop.run(_beat(members, pid, seconds))


def _wait_for_coordinator(port: int) -> None:
    """The first question makes the topic of offsets."""
    deadline = time.monotonic() + READY_TIMEOUT_S
    with Connection(port) as connection:
        while True:
            answer: Any = connection.call(FindCoordinatorRequest(key="bench", key_type=0), version=2)
            if answer.error_code == 0:
                return
            assert time.monotonic() < deadline, f"no coordinator: {answer.error_code}"
            time.sleep(0.1)


async def _beat(members: Sequence[Member], pid: int, seconds: float) -> Beaten:
    async with asyncio.TaskGroup() as tasks:
        running = [tasks.create_task(member.run()) for member in members]
        await _wait_until_steady(members, running)
        for member in members:
            member.latencies_ms.clear()
        before, started = usage(pid), time.perf_counter()
        await asyncio.sleep(seconds)
        used, elapsed_s = usage(pid) - before, time.perf_counter() - started
        for task in running:
            task.cancel()
    latencies_ms = [latency for member in members for latency in member.latencies_ms]
    joined = sum(member.join_count for member in members)
    assert all(member.is_steady for member in members), f"members joined again while they were measured ({joined})"
    return Beaten(elapsed_s, latencies_ms, used)


async def _wait_until_steady(members: Sequence[Member], running: Sequence[asyncio.Task[None]]) -> None:
    deadline = time.monotonic() + READY_TIMEOUT_S
    while not all(member.is_steady and len(member.latencies_ms) >= 2 for member in members):
        assert time.monotonic() < deadline, f"{sum(not member.is_steady for member in members)} members not steady"
        for task in running:
            if task.done():
                task.result()
        await asyncio.sleep(0.2)


@dataclass(slots=True)
class Member:
    port: int
    group: str
    topic: str
    is_steady: bool = False
    join_count: int = 0
    latencies_ms: list[float] = field(default_factory=list)
    _reader: asyncio.StreamReader | None = None
    _writer: asyncio.StreamWriter | None = None

    async def run(self) -> None:
        self._reader, self._writer = await asyncio.open_connection("127.0.0.1", self.port)
        try:
            while True:
                await self.join()
                await self.beat_until_moved()
        finally:
            self._writer.close()

    async def join(self) -> None:
        raise NotImplementedError

    async def beat_until_moved(self) -> None:
        raise NotImplementedError

    async def call(self, request: Message, version: int) -> Any:
        assert self._reader is not None
        assert self._writer is not None
        self._writer.write(request_frame(request, version))
        (size,) = struct.unpack(">i", await self._reader.readexactly(4))
        return parse_response(memoryview(await self._reader.readexactly(size)), request.API, version)[1]

    async def timed(self, request: Message, version: int) -> Any:
        started = time.perf_counter()
        answer = await self.call(request, version)
        self.latencies_ms.append((time.perf_counter() - started) * 1_000)
        return answer


@dataclass(slots=True)
class ClassicMember(Member):
    _id: str = ""
    _generation: int = -1

    async def join(self) -> None:
        self.is_steady = False
        answer = await self._ask_to_join()
        while answer.error_code in (ErrorCode.MEMBER_ID_REQUIRED, *RETRIABLE):
            await asyncio.sleep(RETRY_S if answer.error_code in RETRIABLE else 0)
            self._id = answer.member_id
            answer = await self._ask_to_join()
        assert answer.error_code == 0, f"JoinGroup answered {answer.error_code}"
        self._id, self._generation, self.join_count = answer.member_id, answer.generation_id, self.join_count + 1
        shares = [SyncGroupRequestAssignment(member_id=member.member_id) for member in answer.members]
        synced = await self.call(
            SyncGroupRequest(
                group_id=self.group, generation_id=self._generation, member_id=self._id, assignments=shares
            ),
            SYNC_VERSION,
        )
        self.is_steady = synced.error_code == 0

    async def _ask_to_join(self) -> Any:
        protocols = [JoinGroupRequestProtocol(name="range", metadata=b"")]
        request = JoinGroupRequest(
            group_id=self.group, session_timeout_ms=SESSION_MS, rebalance_timeout_ms=60_000, member_id=self._id,
            protocol_type="consumer", protocols=protocols,
        )  # fmt: skip
        return await self.call(request, JOIN_VERSION)

    async def beat_until_moved(self) -> None:
        request = HeartbeatRequest(group_id=self.group, generation_id=self._generation, member_id=self._id)
        while self.is_steady:
            await asyncio.sleep(CLASSIC_INTERVAL_S)
            self.is_steady = (await self.timed(request, HEARTBEAT_VERSION)).error_code == 0


@dataclass(slots=True)
class ConsumerMember(Member):
    _id: str = field(default_factory=lambda: str(uuid.uuid4()))
    _epoch: int = 0
    _interval_s: float = 1.0

    async def join(self) -> None:
        request = ConsumerGroupHeartbeatRequest(
            group_id=self.group, member_id=self._id, member_epoch=0, rebalance_timeout_ms=60_000,
            subscribed_topic_names=[self.topic], topic_partitions=[],
        )  # fmt: skip
        answer = await self.call(request, CONSUMER_VERSION)
        while answer.error_code in RETRIABLE:
            await asyncio.sleep(RETRY_S)
            answer = await self.call(request, CONSUMER_VERSION)
        assert answer.error_code == 0, f"ConsumerGroupHeartbeat answered {answer.error_code}"
        self._id, self.join_count = answer.member_id, self.join_count + 1
        await self._take(answer)

    async def _take(self, answer: Any) -> None:
        """What it got it says it has at once, as a client does."""
        self._epoch, self._interval_s = answer.member_epoch, answer.heartbeat_interval_ms / 1_000
        while answer.assignment is not None:
            answer = await self.call(self._request(_owned(answer.assignment)), CONSUMER_VERSION)
            if answer.error_code:
                return
            self._epoch = answer.member_epoch
        self.is_steady = True

    def _request(self, owned: list[Any] | None) -> Message:
        return ConsumerGroupHeartbeatRequest(
            group_id=self.group, member_id=self._id, member_epoch=self._epoch, rebalance_timeout_ms=-1,
            subscribed_topic_names=None, topic_partitions=owned,
        )  # fmt: skip

    async def beat_until_moved(self) -> None:
        """New partitions are taken without joining again; only an error throws a member out."""
        while True:
            await asyncio.sleep(self._interval_s)
            answer = await self.timed(self._request(None), CONSUMER_VERSION)
            if answer.error_code:
                self.is_steady, self._epoch = False, 0
                return
            if answer.assignment is not None or answer.member_epoch != self._epoch:
                await self._take(answer)


def _owned(assignment: Any) -> list[Any]:
    return [
        HeartbeatTopicPartitions(topic_id=part.topic_id, partitions=part.partitions)
        for part in assignment.topic_partitions
    ]
