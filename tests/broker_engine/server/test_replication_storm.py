"""Leaders change, links break, nodes are killed and lose power, one after the other: nothing that was acked is lost.

A cheap relative of the simulator: real time, one partition, a controller that never fails.
"""

from __future__ import annotations

import asyncio
import random

import pytest

from broker_engine.errors import BrokerError, ErrorCode
from broker_engine.records.batch import decode_records, iter_batches
from tests.broker_engine.server.replicas import Cluster, led_by

NODES = (1, 2, 3)
STORM_S = 1.5
SETTINGS = {"replica.fetch.wait.max.ms": "50", "replica.lag.time.max.ms": "60", "replica.fetch.backoff.ms": "20"}


class Storm:
    def __init__(self, seed: int, durability: str) -> None:
        self.random = random.Random(seed)
        self.is_fsync = durability == "fsync"
        self.cluster = Cluster(topic={"ack.durability": durability, "min.insync.replicas": "2"}, settings=SETTINGS)
        self.acked: list[bytes] = []
        self.is_over = False

    async def produce(self) -> None:
        number = 0
        while not self.is_over:
            number += 1
            value = b"%d" % number
            node = self.cluster.nodes.get(self.cluster.state.leader)
            try:
                if node is not None and await node.append(value) is ErrorCode.NONE:
                    self.acked.append(value)
            except BrokerError:
                await asyncio.sleep(0.002)
            except TimeoutError:
                pass  # its fate is open
            await asyncio.sleep(0)

    async def break_things(self) -> None:
        deeds = [self.cut, self.heal, self.heal, self.elect, self.kill]
        until_s = asyncio.get_running_loop().time() + STORM_S
        while asyncio.get_running_loop().time() < until_s:
            await asyncio.sleep(self.random.uniform(0.005, 0.08))
            await self.random.choice(deeds)()

    async def cut(self) -> None:
        first, second = self.random.sample(NODES, 2)
        self.cluster.cut_links.append((first, second))

    async def heal(self) -> None:
        self.cluster.cut_links.clear()

    async def elect(self) -> None:
        state = self.cluster.state
        candidates = [member for member in state.isr if member != state.leader]
        if candidates:
            await self.cluster.elect(self.random.choice(candidates), state.isr)

    async def kill(self) -> None:
        """Whoever is killed leaves the ISR; the last one in it, or in fsync mode the last two, are spared."""
        node_id = self.random.choice(NODES)
        state = self.cluster.state
        left = tuple(member for member in state.isr if member != node_id)
        if len(left) < 2:
            return
        leader = state.leader if state.leader in left else self.random.choice(left)
        if node_id in state.isr:
            await self.cluster.elect(leader, left)
        files = self.cluster.nodes[node_id].files
        node = await self.cluster.restart(node_id, has_power=self.random.random() < 0.5)
        assert node.files is files

    async def settle(self, producing: asyncio.Future[None]) -> None:
        self.is_over = True
        self.cluster.cut_links.clear()
        await producing
        await self.cluster.until(lambda: len(self.cluster.state.isr) == len(NODES))
        # Once all have a record of the present term, nothing of another one is left to be cut.
        assert await self.cluster.nodes[self.cluster.state.leader].append(b"last") is ErrorCode.NONE


def values_of(stored: bytes) -> list[bytes]:
    batches = iter_batches(stored)
    return [record.value or b"" for batch in batches for record in decode_records(batch, max_bytes=1 << 20)]


@pytest.mark.parametrize("durability", ["fsync", "page-cache"])
@pytest.mark.parametrize("seed", range(3))
async def test_acked_records_outlive_the_storm(seed: int, durability: str) -> None:
    storm = Storm(seed, durability)
    await storm.cluster.start(*NODES, state=led_by(1, NODES))
    producing = asyncio.ensure_future(storm.produce())
    await storm.break_things()
    await storm.settle(producing)
    stored = {node.stored() for node in storm.cluster.nodes.values()}
    assert len(stored) == 1, "all replicas are equal"
    values = values_of(stored.pop())
    assert len(storm.acked) > 20
    assert set(storm.acked) <= set(values)
    assert [value for value in values if value in set(storm.acked)] == storm.acked
    assert len(values) == len(set(values))
    await storm.cluster.stop()
