"""aiokafka: several members of one group."""

from __future__ import annotations

import asyncio
from typing import Any

from aiokafka import ConsumerRebalanceListener
from aiokafka.coordinator.assignors.range import RangePartitionAssignor

from tests.compatibility.python_drivers.aio.clients import consumer
from tests.compatibility.python_drivers.common import (
    Said,
    Scene,
    expect_equal,
)


class Member(ConsumerRebalanceListener):  # type: ignore[misc]
    def __init__(self, scene: Scene, **settings: Any) -> None:
        self.read: set[tuple[int, int]] = set()
        self.assigned = self.revoked = 0
        self.reader = consumer(scene, **settings)
        self.reader.subscribe([scene.topic], listener=self)

    def on_partitions_assigned(self, assigned: Any) -> None:
        self.assigned += len(assigned)

    def on_partitions_revoked(self, revoked: Any) -> None:
        self.revoked += len(revoked)

    @property
    def partitions(self) -> set[int]:
        return {each.partition for each in self.reader.assignment()}

    async def poll(self) -> None:
        for records in (await self.reader.getmany(timeout_ms=50)).values():
            self.read |= {(record.partition, record.offset) for record in records}


async def settle(members: list[Member], owned: list[int], records: int = 0) -> None:
    """Within the patience that a feature has."""
    while True:
        await asyncio.gather(*(member.poll() for member in members))
        seen = {record for member in members for record in member.read}
        if [len(member.reader.assignment()) for member in members] == owned and len(seen) >= records:
            return


async def group(scene: Scene) -> Said:
    members = [Member(scene) for _ in range(3)]
    await asyncio.gather(*(member.reader.start() for member in members))
    await settle(members, [2, 2, 2], 60)
    for member in members:
        await member.reader.commit()  # so that the group is still there to be looked at
        await member.reader.stop()
    return None


async def static_member(scene: Scene) -> Said:
    for _ in range(2):
        member = Member(scene, group_instance_id="fixed", session_timeout_ms=120_000)
        await member.reader.start()
        await settle([member], [1])
        await member.reader.stop()
    return None


async def rebalance_listener(scene: Scene) -> Said:
    settings = {"partition_assignment_strategy": [RangePartitionAssignor], "heartbeat_interval_ms": 300}
    first, second = Member(scene, **settings), Member(scene, **settings)
    await first.reader.start()
    await settle([first], [4])
    expect_equal(first.assigned, 4, "partitions that the listener heard of")
    await second.reader.start()
    await settle([first, second], [2, 2])
    assert first.revoked >= 4, f"an eager member gives up everything: {first.revoked}"
    await first.reader.stop()
    await second.reader.stop()
    return None
