"""aiokafka: who gets which partition is the clients' own affair; the broker carries what their assignors say."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping

from aiokafka.cluster import ClusterMetadata
from aiokafka.coordinator.assignors.abstract import AbstractPartitionAssignor
from aiokafka.coordinator.assignors.sticky.sticky_assignor import StickyPartitionAssignor
from aiokafka.coordinator.protocol import ConsumerProtocolMemberAssignment, ConsumerProtocolMemberMetadata

from tests.compatibility.python_drivers import wishes
from tests.compatibility.python_drivers.aio.groups import Member, settle
from tests.compatibility.python_drivers.common import Said, Scene, expect_within


async def sticky(scene: Scene) -> Said:
    leaving, staying, joining = (_sticking(scene) for _ in range(3))
    await asyncio.gather(leaving.reader.start(), staying.reader.start())
    await settle([leaving, staying], [3, 3])
    leaving_had, staying_had = leaving.partitions, staying.partitions
    await joining.reader.start()
    await settle([leaving, staying, joining], [2, 2, 2])
    expect_within(leaving.partitions, leaving_had)
    expect_within(staying.partitions, staying_had)
    staying_kept, joining_had = staying.partitions, joining.partitions
    await leaving.reader.stop()
    await settle([staying, joining], [3, 3])
    expect_within(staying_kept, staying.partitions)
    expect_within(joining_had, joining.partitions)
    await _stop(staying, joining)
    return None


def _sticking(scene: Scene) -> Member:
    """The assignor remembers in its class what its member had: with three members in a process, each needs its own."""
    assignor = type("StickyAssignor", (StickyPartitionAssignor,), {})
    return Member(scene, partition_assignment_strategy=[assignor], heartbeat_interval_ms=300)


async def custom(scene: Scene) -> Said:
    members = [
        Member(scene, partition_assignment_strategy=[_wishing(wish)], heartbeat_interval_ms=300)
        for wish in wishes.WISHES
    ]
    await asyncio.gather(*(member.reader.start() for member in members))
    wanted = [set(wishes.indexes(wish.encode())) for wish in wishes.WISHES]
    while [member.partitions for member in members] != wanted:
        await asyncio.gather(*(member.poll() for member in members))
    await settle(members, [len(each) for each in wanted], 60)
    await _stop(*members)
    return None


async def _stop(*members: Member) -> None:
    for member in members:
        for each in member.reader.assignment():
            await member.reader.position(each)  # without one there is nothing to commit
        await member.reader.commit()  # so that the group is still there to be looked at
        await member.reader.stop()


class WishAssignor(AbstractPartitionAssignor):  # type: ignore[misc]
    name = wishes.NAME
    version = 0
    wish = ""

    @classmethod
    def metadata(cls, topics: Iterable[str]) -> ConsumerProtocolMemberMetadata:
        return ConsumerProtocolMemberMetadata(cls.version, list(topics), cls.wish.encode())

    @classmethod
    def assign(
        cls, cluster: ClusterMetadata, members: Mapping[str, ConsumerProtocolMemberMetadata]
    ) -> dict[str, ConsumerProtocolMemberAssignment]:
        return {member: cls._granted(metadata) for member, metadata in members.items()}

    @classmethod
    def _granted(cls, metadata: ConsumerProtocolMemberMetadata) -> ConsumerProtocolMemberAssignment:
        (topic,) = metadata.subscription
        return ConsumerProtocolMemberAssignment(cls.version, [(topic, wishes.indexes(metadata.user_data))], b"")

    @classmethod
    def on_assignment(cls, assignment: ConsumerProtocolMemberAssignment) -> None:
        pass


def _wishing(wish: str) -> type[WishAssignor]:
    return type("WishAssignor", (WishAssignor,), {"wish": wish})
