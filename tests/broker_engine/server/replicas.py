"""Several nodes' replicas of one topic in one process: real logs, cores, fetchers and codec; no sockets, no quorum."""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar, cast
from uuid import UUID

from broker_engine.client.errors import ConnectionFailed
from broker_engine.clock import SystemClock, SystemRandomness
from broker_engine.config import BrokerConfig
from broker_engine.errors import ErrorCode
from broker_engine.handlers import replica_fetch
from broker_engine.handlers.api import Call
from broker_engine.log.flush import FlushJob
from broker_engine.log.memory_files import MemoryFiles
from broker_engine.metadata.image import EMPTY_IMAGE, BrokerImage, MetadataImage, PartitionImage, TopicImage
from broker_engine.names import ROOT, Name
from broker_engine.records.batch import iter_batches, parse_header
from broker_engine.records.builder import NewRecord, build_batch
from broker_engine.server.checkpoints import HIGH_WATERMARKS, LOG_STARTS, RECOVERY_POINTS, read_checkpoint
from broker_engine.server.flush import FlushManager
from broker_engine.server.local_partition import LocalPartition
from broker_engine.server.log_starts import LogStarts
from broker_engine.server.partitions import Partitions
from broker_engine.server.replica_sessions import ReplicaSessions
from broker_engine.server.replication import Replication
from broker_engine.server.saved_offsets import SavedOffsets
from broker_engine.server.upkeep import Upkeep
from broker_engine.wire.framing import encode_request, encode_response, parse_request_header, parse_response
from broker_engine.wire.messages.alter_partition import (
    AlterPartitionPartitionResult,
    AlterPartitionRequest,
    AlterPartitionResponse,
    AlterPartitionTopicResult,
)
from broker_engine.wire.messages.fetch import FetchRequest, FetchResponse
from broker_engine.wire.schema import Message

TOPIC_ID = UUID(int=77)
NAME = Name(ROOT, "orders")
R = TypeVar("R", bound=Message)


class Node:
    """As much of a broker as replication touches."""

    def __init__(self, cluster: Cluster, node_id: int, files: MemoryFiles) -> None:
        self.cluster = cluster
        self.node_id = node_id
        self.files = files
        self.clock = SystemClock()
        self.config = BrokerConfig.load({}, {"node.id": str(node_id), **cluster.settings})
        self.image = EMPTY_IMAGE
        self._showing = asyncio.Lock()
        self.replica_sessions = ReplicaSessions(SystemRandomness())
        self.flush: FlushManager[FlushJob] = FlushManager(self.clock, cluster.failures.append)
        saved = SavedOffsets(*(read_checkpoint(files, name) for name in (RECOVERY_POINTS, LOG_STARTS, HIGH_WATERMARKS)))
        self.partitions = Partitions(
            node_id=node_id,
            files=files,
            clock=self.clock,
            randomness=SystemRandomness(),
            config=self.config,
            request_flush=self.flush.request,
            saved=saved,
        )
        self.upkeep = Upkeep(self.partitions, LogStarts(self.partitions, files), files, self.config, self.clock)
        self.replication = Replication(
            config=self.config,
            clock=self.clock,
            partitions=self.partitions,
            peers=self,
            controller=cast(Any, cluster),
            broker_epoch=lambda: cluster.image.brokers[node_id].epoch,
            lower_points=self.upkeep.write_recovery_points,
        )
        self.replication.start()

    @property
    def local(self) -> LocalPartition:
        local = self.partitions.find(TOPIC_ID, 0)
        assert local is not None
        return local

    async def show(self, image: MetadataImage) -> None:
        async with self._showing:  # one image after the other, as the metadata driver does it
            old = self.image
            await self.partitions.open_missing(old, image)
            self.image = image
            await self.partitions.retire_removed(old, image)

    async def ask(
        self, node_id: int, message: Message, answer: type[R], *, lane: str, timeout_ms: int, version: int | None = None
    ) -> R:
        """Peers.ask by way of the codec, so that the bytes are those of a connection."""
        self.cluster.check_link(self.node_id, node_id)
        assert version is not None
        frame = memoryview(b"".join(map(bytes, encode_request(1, None, message, version))))
        request = FetchRequest.decode(parse_request_header(frame).body, version)
        call = Call(cast(Any, self.cluster.nodes[node_id]), cast(Any, None), cast(Any, None), version, None)
        response = replica_fetch.handle(request, call)
        settled = await response if isinstance(response, Awaitable) else response
        self.cluster.check_link(self.node_id, node_id)
        data = b"".join(
            part if isinstance(part, bytes | bytearray | memoryview) else _take(part)
            for part in encode_response(1, settled, version)
        )
        _, parsed = parse_response(memoryview(data), FetchResponse.API, version)
        return cast(R, parsed)

    async def append(self, *values: bytes, acks: int = -1, **identity: int) -> ErrorCode:
        batch = build_batch([NewRecord(1000, None, value) for value in values], **identity)  # type: ignore[arg-type]
        appended = self.local.append(memoryview(batch), produce_version=9, acks=acks)
        done: asyncio.Future[ErrorCode] = asyncio.get_running_loop().create_future()
        if acks == -1:
            self.local.when_acked(appended.end_offset, lambda code: None if done.done() else done.set_result(code))
            return await asyncio.wait_for(done, 10)
        return ErrorCode.NONE

    def stored(self) -> bytes:
        """Every batch, from segment to segment."""
        log = self.local.log
        stored, offset = b"", log.log_start_offset
        while offset < log.log_end_offset:
            read = log.read(offset, max_bytes=1 << 30, end_offset=log.log_end_offset, at_least_one=True)
            batches = list(iter_batches(b"".join(map(_take, read.ranges))))
            stored += b"".join(batches)
            offset = parse_header(batches[-1]).next_offset
        return stored

    async def stop(self, *, is_clean: bool = True) -> None:
        await self.replication.stop()
        for local in self.partitions.all():
            local.retire(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        if is_clean:
            await self.flush.drain()
        self.flush.close()


def _take(file_range: Any) -> bytes:
    data: bytes = file_range.read()
    file_range.release()
    return data


class Cluster:
    """Also the controller: it compares and sets, and shows everybody the next image."""

    def __init__(self, *, settings: dict[str, str] | None = None, topic: dict[str, str] | None = None) -> None:
        self.settings = {
            "replica.fetch.wait.max.ms": "200",
            "replica.lag.time.max.ms": "400",
            "replica.fetch.backoff.ms": "50",
            **(settings or {}),
        }
        self.topic_configs = topic or {}
        self.failures: list[Exception] = []
        self.nodes: dict[int, Node] = {}
        self.cut_links: list[tuple[int, int]] = []
        self.image = EMPTY_IMAGE
        self.alterations: list[tuple[int, ...]] = []

    def check_link(self, first: int, second: int) -> None:
        is_cut = (first, second) in self.cut_links or (second, first) in self.cut_links
        if is_cut or second not in self.nodes:
            raise ConnectionFailed(f"node {second}", "the link is cut")

    async def start(self, *node_ids: int, state: PartitionImage) -> None:
        brokers = {number: _broker(number, 100 + number) for number in node_ids}
        self.image = dataclasses.replace(self.image, brokers=brokers)
        for number in node_ids:
            self.nodes[number] = Node(self, number, MemoryFiles())
        await self.set(state)

    @property
    def state(self) -> PartitionImage:
        return self.image.topics[TOPIC_ID].partitions[0]

    async def set(self, state: PartitionImage, *, only: tuple[int, ...] | None = None) -> None:
        topic = TopicImage(TOPIC_ID, NAME, {0: state}, self.topic_configs)
        self.image = dataclasses.replace(self.image, topics={TOPIC_ID: topic})
        for node in list(self.nodes.values()):
            if only is None or node.node_id in only:
                await node.show(self.image)

    def without_topic(self) -> MetadataImage:
        return dataclasses.replace(self.image, topics={})

    async def elect(self, leader: int, isr: tuple[int, ...], *, only: tuple[int, ...] | None = None) -> None:
        state = self.state
        await self.set(
            dataclasses.replace(
                state,
                leader=leader,
                isr=isr,
                leader_epoch=state.leader_epoch + 1,
                partition_epoch=state.partition_epoch + 1,
            ),
            only=only,
        )

    async def restart(self, node_id: int, *, has_power: bool = True) -> Node:
        """As after a kill -9: what was written is there. Without power: what was synced."""
        node = self.nodes.pop(node_id)
        await node.stop(is_clean=False)
        if not has_power:
            node.files.crash()
        brokers = dict(self.image.brokers)
        brokers[node_id] = _broker(node_id, brokers[node_id].epoch + 100)
        self.image = dataclasses.replace(self.image, brokers=brokers)
        new = self.nodes[node_id] = Node(self, node_id, node.files)
        for each in self.nodes.values():
            await each.show(self.image)
        return new

    async def ask(self, message: Message, answer: type[R], *, timeout_ms: int, lane: str = "") -> R:
        assert isinstance(message, AlterPartitionRequest)
        (topic,) = message.topics
        (change,) = topic.partitions
        state = self.state
        code = ErrorCode.NONE
        isr = tuple(member.broker_id for member in change.new_isr_with_epochs)
        if (change.leader_epoch, change.partition_epoch) != (state.leader_epoch, state.partition_epoch):
            code = ErrorCode.INVALID_UPDATE_VERSION
        else:
            self.alterations.append(isr)
            await self._change_isr(state, isr)
        result = AlterPartitionPartitionResult(
            partition_index=0,
            error_code=code,
            leader_id=self.state.leader,
            leader_epoch=self.state.leader_epoch,
            isr=list(self.state.isr),
            partition_epoch=self.state.partition_epoch,
        )
        topics = [AlterPartitionTopicResult(topic_id=topic.topic_id, partitions=[result])]
        return cast(R, AlterPartitionResponse(topics=topics))

    async def _change_isr(self, state: PartitionImage, isr: tuple[int, ...]) -> None:
        """A leader that leaves itself out is replaced."""
        if state.leader not in isr:
            await self.elect(isr[0], isr)
        else:
            await self.set(dataclasses.replace(state, isr=isr, partition_epoch=state.partition_epoch + 1))

    async def until(self, is_so: Callable[[], bool], wait_s: float = 10) -> None:
        async with asyncio.timeout(wait_s):
            while not is_so():  # noqa: ASYNC110 - nobody signals it: it is looked at from outside
                await asyncio.sleep(0.002)

    async def stop(self) -> None:
        for node in self.nodes.values():
            await node.stop()
        assert not self.failures


def _broker(broker_id: int, epoch: int) -> BrokerImage:
    return BrokerImage(broker_id, epoch, UUID(int=epoch), None, (), is_fenced=False)


def led_by(leader: int, replicas: tuple[int, ...], isr: tuple[int, ...] | None = None) -> PartitionImage:
    return PartitionImage(replicas, replicas if isr is None else isr, (), leader, leader_epoch=0, partition_epoch=0)
