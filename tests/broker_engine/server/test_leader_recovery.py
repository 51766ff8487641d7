"""The controller looks for leaders by asking for log ends: for a second, whoever does not answer."""

from __future__ import annotations

import asyncio
from typing import Any, cast

from broker_engine.client.errors import ConnectionFailed
from broker_engine.config import BrokerConfig
from broker_engine.metadata.controller import fence_broker, unfence_broker
from broker_engine.metadata.image import MetadataImage
from broker_engine.metadata.parts import PartitionImage
from broker_engine.server.leader_recovery import LeaderRecovery
from broker_engine.simulator.sim_loop import SimLoop
from broker_engine.wire.messages.internal_replica_ends import (
    ReplicaEndsPartition,
    ReplicaEndsRequest,
    ReplicaEndsResponse,
    ReplicaEndsTopicResult,
)
from tests.broker_engine.metadata.builders import CONFIG, after, cluster, partition_of, with_topic

CONTROLLER_ID = 9
"""It holds no replica."""
FOUND_WITHIN_S = 1.3


class World:
    """A controller's image and its way to the brokers, of which some never answer."""

    config: BrokerConfig = CONFIG
    node_id = CONTROLLER_ID

    def __init__(self, image: MetadataImage, end_offsets: dict[int, int]) -> None:
        self.image = image
        self.metadata = self.peers = self
        self._end_offsets = end_offsets

    async def ask(self, broker_id: int, request: ReplicaEndsRequest, *_: Any, timeout_ms: int, **__: Any) -> Any:
        if broker_id not in self._end_offsets:
            await asyncio.sleep(timeout_ms / 1000)
            raise ConnectionFailed(f"node {broker_id}", "no answer")
        row = ReplicaEndsPartition(partition_index=0, last_epoch=0, end_offset=self._end_offsets[broker_id])
        topics = [ReplicaEndsTopicResult(topic_id=topic.topic_id, partitions=[row]) for topic in request.topics]
        return ReplicaEndsResponse(broker_epoch=self.image.brokers[broker_id].epoch, topics=topics)

    async def commit(self, decide: Any) -> Any:
        decision = decide(self.image)
        self.image = after(self.image, decision.records)
        return decision.results


def left_behind() -> MetadataImage:
    """Broker 3 was the last one in sync, and is gone; 1 and 2 live and lack records."""
    configs = {"unclean_leader_election_enable": "true", "min_insync_replicas": "1"}
    image = with_topic(cluster(3), [1, 2, 3], **configs)
    for broker_id in (1, 2, 3):
        image = after(image, fence_broker(image, broker_id, image.brokers[broker_id].epoch, config=CONFIG).records)
    for broker_id in (1, 2):
        image = after(image, unfence_broker(image, broker_id, image.brokers[broker_id].epoch, config=CONFIG).records)
    return image


def found(end_offsets: dict[int, int]) -> tuple[PartitionImage, float]:
    """What became of the partition, and how long that took."""
    loop = SimLoop(1)
    world = World(left_behind(), end_offsets)
    loop.spawn(loop.world, LeaderRecovery(cast(Any, world)).run(), "recovery")

    async def until_led() -> float:
        while partition_of(world.image).leader < 0:  # noqa: ASYNC110 - virtual time
            await asyncio.sleep(0.01)
        return loop.now_s

    took_s = loop.run_until(loop.spawn(loop.world, until_led(), "test"), deadline_s=60)
    loop.end()
    return partition_of(world.image), took_s


def test_the_longest_log_leads_without_being_asked_for() -> None:
    partition, took_s = found({1: 5, 2: 8})
    assert (partition.leader, partition.unclean_elections) == (2, 1)
    assert took_s < FOUND_WITHIN_S / 2


def test_a_dead_node_is_waited_for_a_second_and_no_longer() -> None:
    partition, took_s = found({2: 8})
    assert partition.leader == 2
    assert took_s < FOUND_WITHIN_S


def test_where_nobody_answers_somebody_leads_all_the_same() -> None:
    partition, took_s = found({})
    assert partition.leader == 1
    assert took_s < FOUND_WITHIN_S
