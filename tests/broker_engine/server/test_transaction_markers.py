"""Markers come to every partition, whoever leads it, however often it takes; and to none that has no use for them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any
from uuid import UUID

import pytest
import pytest_asyncio

from broker_engine.client.errors import ConnectionFailed
from broker_engine.clock import SystemRandomness
from broker_engine.errors import ErrorCode
from broker_engine.metadata.image import EMPTY_IMAGE, MetadataImage
from broker_engine.metadata.records import (
    BrokerChangeRecord,
    BrokerRegistrationRecord,
    PartitionRecord,
    Record,
    RemoveTopicRecord,
    TopicRecord,
)
from broker_engine.server.markers import Marker, TopicPartition
from broker_engine.server.supervisor import Supervisor
from broker_engine.server.transaction_markers import MarkerSender
from broker_engine.wire.messages.write_txn_markers import (
    WritableTxnMarkerPartitionResult,
    WritableTxnMarkerResult,
    WritableTxnMarkerTopicResult,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)

ME, OTHER = 1, 2
TOPIC_ID = UUID(int=7)
Answer = Callable[[TopicPartition], ErrorCode]


def accept(place: TopicPartition) -> ErrorCode:
    return ErrorCode.NONE


class World:
    """One topic, two brokers; a test says who leads what and how each broker answers."""

    def __init__(self) -> None:
        self.node_id = ME
        self.peers = self
        self.randomness = SystemRandomness()
        self.image = EMPTY_IMAGE
        self.answers: dict[int, Answer] = {ME: accept, OTHER: accept}
        self.is_reachable = True
        self.silence: asyncio.Future[None] | None = None
        """While there is one, nobody answers: the other side has lost its power."""
        self.unanswered_count = 0
        self.request_count = 0
        self.written: list[tuple[int, Marker]] = []
        self.done: list[str] = []
        self.tasks = Supervisor()
        self.sender = MarkerSender(self, self.tasks, self.write_here)  # type: ignore[arg-type]

    def lead(self, *leaders: int) -> None:
        """Partition n is led by the n-th; -1: by nobody."""
        records: list[Record] = [] if self.image.topics else [TopicRecord(name="orders", topic_id=TOPIC_ID)]
        records += [
            PartitionRecord(topic_id=TOPIC_ID, partition=index, replicas=[ME, OTHER], isr=[ME], leader=leader)
            for index, leader in enumerate(leaders)
        ]
        self.show(self.image.replay(records, self.image.next_offset))

    def delete(self) -> None:
        gone = RemoveTopicRecord(name="orders", topic_id=TOPIC_ID)
        self.show(self.image.replay([gone], self.image.next_offset))

    def show(self, image: MetadataImage) -> None:
        old, self.image = self.image, image
        self.sender.follow(old, image)

    def send(self, name: str, *indexes: int, owner: object = None) -> None:
        places = tuple(("orders", index) for index in indexes)
        marker = Marker(5, 3, is_commit=True, coordinator_epoch=4, partitions=places, transaction_version=2)
        self.sender.send(marker, owner, lambda: self.done.append(name))

    async def write_here(self, broker: Any, markers: Sequence[Marker]) -> list[dict[TopicPartition, ErrorCode]]:
        await asyncio.sleep(0)
        self.request_count += 1
        self.written += [(ME, marker) for marker in markers]
        return [{place: self.answers[ME](place) for place in marker.partitions} for marker in markers]

    async def ask(self, node_id: int, request: WriteTxnMarkersRequest, *_: Any, **__: Any) -> WriteTxnMarkersResponse:
        await asyncio.sleep(0)
        if self.silence is not None:
            self.unanswered_count += 1
            await self.silence
        if not self.is_reachable:
            raise ConnectionFailed(f"node {node_id}", "refused")
        results = []
        for asked in request.markers:
            places = tuple((topic.name, index) for topic in asked.topics for index in topic.partition_indexes)
            marker = Marker(
                asked.producer_id,
                asked.producer_epoch,
                is_commit=asked.transaction_result,
                coordinator_epoch=asked.coordinator_epoch,
                partitions=places,
                transaction_version=asked.transaction_version,
            )
            self.written.append((node_id, marker))
            rows = [
                WritableTxnMarkerPartitionResult(partition_index=place[1], error_code=self.answers[node_id](place))
                for place in places
            ]
            topics = [WritableTxnMarkerTopicResult(name="orders", partitions=rows)]
            results.append(WritableTxnMarkerResult(producer_id=asked.producer_id, topics=topics))
        return WriteTxnMarkersResponse(markers=results)

    def hang_up(self, node_id: int, *, lane: str) -> None:
        assert self.silence is not None
        assert (node_id, lane) == (OTHER, "markers")
        self.silence.set_exception(ConnectionFailed(f"node {node_id}", "hung up"))
        self.silence = None

    def register(self, node_id: int) -> None:
        life = self.image.next_offset
        record = BrokerRegistrationRecord(broker_id=node_id, incarnation_id=UUID(int=life), broker_epoch=life)
        self.show(self.image.replay([record], self.image.next_offset))

    def fence(self, node_id: int) -> None:
        epoch = self.image.brokers[node_id].epoch
        change = BrokerChangeRecord(broker_id=node_id, broker_epoch=epoch, fenced=True)
        self.show(self.image.replay([change], self.image.next_offset))

    async def until(self, is_so: Callable[[], bool]) -> None:
        async with asyncio.timeout(5):
            while not is_so():  # noqa: ASYNC110 - it is other tasks that make it so
                await asyncio.sleep(0.001)

    async def until_done(self, *names: str) -> None:
        await self.until(lambda: sorted(self.done) == sorted(names))


@pytest_asyncio.fixture
async def world() -> Any:
    made = World()
    yield made
    made.sender.stop()
    await made.tasks.stop()


async def test_each_leader_gets_its_partitions_in_one_request(world: World) -> None:
    world.lead(ME, OTHER, OTHER)
    world.send("t", 0, 1, 2)
    await world.until_done("t")
    assert {(node, marker.partitions) for node, marker in world.written} == {
        (ME, (("orders", 0),)),
        (OTHER, (("orders", 1), ("orders", 2))),
    }
    marker = world.written[-1][1]
    assert (marker.producer_id, marker.producer_epoch, marker.coordinator_epoch) == (5, 3, 4)
    assert (marker.is_commit, marker.transaction_version) == (True, 2)


async def test_a_transaction_without_partitions_is_done_at_once(world: World) -> None:
    world.send("empty")
    assert world.done == ["empty"]


async def test_what_is_refused_is_tried_again(world: World) -> None:
    world.lead(ME)
    refusals = iter([ErrorCode.NOT_ENOUGH_REPLICAS, ErrorCode.REQUEST_TIMED_OUT])
    world.answers[ME] = lambda place: next(refusals, ErrorCode.NONE)
    world.send("t", 0)
    await world.until_done("t")
    assert len(world.written) == 3


async def test_a_broker_that_is_not_reached_is_asked_again(world: World) -> None:
    world.lead(OTHER)
    world.is_reachable = False
    world.send("t", 0)
    await world.until(lambda: bool(world.sender._parked))
    world.is_reachable = True
    await world.until_done("t")


@pytest.mark.parametrize("leave", [World.fence, World.register], ids=["fenced", "begun anew"])
async def test_a_broker_that_lost_its_power_is_not_waited_for(
    world: World, leave: Callable[[World, int], None]
) -> None:
    world.register(OTHER)
    world.lead(OTHER)
    world.silence = asyncio.get_running_loop().create_future()
    world.send("t", 0)
    await world.until(lambda: world.unanswered_count == 1)
    leave(world, OTHER)
    world.lead(ME)
    await world.until_done("t")
    assert [node for node, _ in world.written] == [ME]


async def test_a_new_leader_is_followed_at_once(world: World) -> None:
    world.lead(OTHER)
    world.answers[OTHER] = lambda place: ErrorCode.NOT_LEADER_OR_FOLLOWER
    world.send("t", 0)
    await world.until(lambda: bool(world.sender._parked))
    world.lead(ME)
    await world.until_done("t")
    assert world.written[-1][0] == ME


async def test_a_partition_without_a_leader_is_waited_for(world: World) -> None:
    world.lead(-1)
    world.send("t", 0)
    assert world.done == []
    world.lead(OTHER)
    await world.until_done("t")


async def test_a_deleted_topic_needs_no_marker(world: World) -> None:
    world.lead(-1)
    world.send("t", 0)
    world.delete()
    assert world.done == ["t"]
    assert world.written == []


async def test_a_partition_that_knows_a_later_epoch_is_done(world: World) -> None:
    world.lead(ME)
    world.answers[ME] = lambda place: ErrorCode.INVALID_PRODUCER_EPOCH
    world.send("t", 0)
    await world.until_done("t")


async def test_a_deposed_coordinator_stops_and_completes_nothing(world: World) -> None:
    world.lead(ME, -1)
    world.answers[ME] = lambda place: ErrorCode.TRANSACTION_COORDINATOR_FENCED
    world.send("t", 0, 1)
    await world.until(lambda: len(world.written) == 1)
    world.lead(ME, ME)
    world.send("later")
    await world.until_done("later")
    await asyncio.sleep(0)
    assert len(world.written) == 1


async def test_what_a_dropped_shard_had_sent_completes_nothing(world: World) -> None:
    world.lead(-1, -1)
    mine, theirs = object(), object()
    world.send("mine", 0, owner=mine)
    world.send("theirs", 1, owner=theirs)
    world.sender.forget(mine)
    world.lead(ME, ME)
    await world.until_done("theirs")
    assert [marker.partitions for _, marker in world.written] == [(("orders", 1),)]


async def test_one_request_at_a_time_takes_along_all_that_waits(world: World) -> None:
    world.lead(OTHER, OTHER, OTHER)
    for index in range(3):
        world.send(f"t{index}", index)
    await world.until_done("t0", "t1", "t2")
    assert len(world.written) == 3


async def test_an_error_of_ours_leaves_no_transaction_open(world: World) -> None:
    world.lead(ME)
    failures = iter([RuntimeError("a bug")])

    def fail_once(place: TopicPartition) -> ErrorCode:
        for error in failures:
            raise error
        return ErrorCode.NONE

    world.answers[ME] = fail_once
    world.send("t", 0)
    await world.until_done("t")
