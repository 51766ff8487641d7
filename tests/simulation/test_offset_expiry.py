"""offsets.retention.minutes of a broker's configuration, on a whole broker whose minutes take no time."""

from __future__ import annotations

import asyncio

import pytest

from broker_engine.client import Client, ClientConfig, GroupIdentity, TopicPartition
from broker_engine.client.admin import Admin, NewTopic
from broker_engine.client.coordinator import Coordinator, CoordinatorKind
from broker_engine.client.group_offsets import commit_offsets, fetch_offsets
from broker_engine.simulator.node import CLIENT_PORT, SimNode, host_of
from broker_engine.simulator.sim_clock import SimClock, SimRandomness
from broker_engine.simulator.sim_loop import SimLoop
from broker_engine.simulator.sim_net import SimDialer, SimNet

GROUP, TARGET = "readers", TopicPartition("orders", 0)
NO_MEMBER = GroupIdentity(GROUP, -1, "")
CHECK_S = 5


class Story:
    """One node with the given settings, and a client that commits where the group has no members."""

    def __init__(self, settings: dict[str, str]) -> None:
        self.loop = SimLoop("expiry")
        self._net = SimNet(self.loop, self.loop.seed, latency_s=0.001)
        listeners = {"listeners": f"{host_of(1)}:{CLIENT_PORT}", "offsets.topic.num.partitions": "1"}
        self._node = SimNode(self.loop, self._net, 1, {**listeners, **settings})

    def play(self, *waits_s: float) -> list[int | None]:
        """The committed offset after each of the waits."""
        process = self.loop.new_process("client")
        try:
            self._node.start()
            client = Client(
                ClientConfig(bootstrap=(f"{host_of(1)}:{CLIENT_PORT}",)),
                dialer=SimDialer(self._net, process, "127.0.1.1"),
                clock=SimClock(self.loop),
                randomness=SimRandomness("client"),
            )
            work = self.loop.spawn(process, self._commit_and_look(client, waits_s), "story")
            return self.loop.run_until(work, deadline_s=10_000)
        finally:
            self.loop.end()

    async def _commit_and_look(self, client: Client, waits_s: tuple[float, ...]) -> list[int | None]:
        while not self._node.is_ready:  # noqa: ASYNC110 - virtual time
            await asyncio.sleep(0.1)
        await client.start()
        await Admin(client).create_topics([NewTopic(TARGET.topic, partitions=1)])
        coordinator = Coordinator(client, CoordinatorKind.GROUP, GROUP)
        await commit_offsets(coordinator, NO_MEMBER, {TARGET: 42})
        seen = []
        for wait_s in waits_s:
            await asyncio.sleep(wait_s)
            seen.append((await fetch_offsets(coordinator, GROUP, [TARGET])).get(TARGET))
        await client.close()
        self._node.stop()
        while self._node.is_running:  # noqa: ASYNC110 - virtual time
            await asyncio.sleep(0.1)
        return seen


@pytest.mark.parametrize("minutes", [1, 3])
def test_a_commit_of_an_empty_group_goes_after_the_minutes_of_the_broker(minutes: int) -> None:
    settings = {
        "offsets.retention.minutes": str(minutes),
        "offsets.retention.check.interval.ms": str(CHECK_S * 1000),
    }
    seen = Story(settings).play(0, minutes * 60 - CHECK_S, 2 * CHECK_S)
    assert seen == [42, 42, None]


def test_by_default_it_is_kept_for_longer() -> None:
    assert Story({"offsets.retention.check.interval.ms": str(CHECK_S * 1000)}).play(0, 600) == [42, 42]
