"""Every process killed at once: soon after the last of them has started again, everything is led by enough in sync.

Nobody is waited for there but by name: no session runs out for a process that another life has replaced, and the
question for log ends is asked again as soon as one more can answer it.
"""

from __future__ import annotations

import asyncio
import dataclasses
from random import Random

import pytest

from broker_engine.metadata.image import MetadataImage
from broker_engine.metadata.parts import PartitionImage
from broker_engine.metadata.sweep import partitions_where
from broker_engine.metadata.telemetry_topic import TELEMETRY_TOPIC
from broker_engine.simulator.run import Run
from broker_engine.simulator.schedule import Fault
from broker_engine.simulator.swarm import draw

KILL_COUNT = 3
SESSION_MS = 20_000
BACK_WITHIN_S = 4.0
"""Most of it is the election of a controller."""


class KillOfAll(Run):
    took_s: list[float]

    async def _chaos(self) -> None:
        random = Random(self.swarm.seed)
        self.took_s = []
        for _ in range(KILL_COUNT):
            await asyncio.sleep(random.uniform(0.2, 3.0))
            downs_s = {node_id: random.uniform(0.3, 2.3) for node_id in self.cluster.nodes}
            for node_id, down_s in downs_s.items():
                self.cluster.inject(Fault(at_s=0.0, kind="kill", node=node_id, for_s=down_s))
            await asyncio.sleep(max(downs_s.values()))
            started_s = self.loop.now_s
            while not self._is_back() and self.loop.now_s < started_s + 2 * SESSION_MS / 1000:  # noqa: ASYNC110
                await asyncio.sleep(0.02)
            self.took_s.append(self.loop.now_s - started_s)

    def _is_back(self) -> bool:
        if not all(node.is_running and node.is_ready for node in self.cluster.nodes.values()):
            return False
        brokers = [node.broker for node in self.cluster.brokers if node.broker is not None]
        return not any(_is_any_missing(broker.image) for broker in brokers)


def _is_any_missing(image: MetadataImage) -> bool:
    def is_missing(partition: PartitionImage) -> bool:
        return partition.leader < 0 or len(partition.isr) < min(2, len(partition.replicas))

    return any(topic.name != TELEMETRY_TOPIC for topic, _, _ in partitions_where(image, is_missing))


@pytest.mark.parametrize("seed", [1000, 1001, 1002])
def test_all_are_back_soon_after_the_last_one_has_started(seed: int) -> None:
    swarm = draw(seed, node_count=3)
    settings = {**swarm.settings, "broker.session.timeout.ms": str(SESSION_MS)}
    run = KillOfAll(dataclasses.replace(swarm, settings=settings, chaos_s=1.0), ())
    report = run.go()
    assert report.violations == []
    assert len(run.took_s) == KILL_COUNT
    assert max(run.took_s) < BACK_WITHIN_S
