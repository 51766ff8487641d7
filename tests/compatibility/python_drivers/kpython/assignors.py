"""kafka-python: who gets which partition is the clients' own affair; the broker carries what their assignors say."""

from __future__ import annotations

from typing import Any

from kafka.coordinator.assignors.abstract import AbstractPartitionAssignor
from kafka.coordinator.assignors.sticky.sticky_assignor import StickyPartitionAssignor
from kafka.protocol.consumer.metadata import ConsumerProtocolAssignment, ConsumerProtocolSubscription

from tests.compatibility.python_drivers import wishes
from tests.compatibility.python_drivers.common import Said, Scene, expect_within, wait_until
from tests.compatibility.python_drivers.kpython.groups import Member, settle


def sticky(scene: Scene) -> Said:
    settings = {"partition_assignment_strategy": [StickyPartitionAssignor]}
    leaving, staying = Member(scene, **settings), Member(scene, **settings)
    settle("three for each", [leaving, staying], [3, 3])
    leaving_had, staying_had = leaving.partitions, staying.partitions
    joining = Member(scene, **settings)
    settle("two for each", [leaving, staying, joining], [2, 2, 2])
    expect_within(leaving.partitions, leaving_had)
    expect_within(staying.partitions, staying_had)
    staying_kept, joining_had = staying.partitions, joining.partitions
    leaving.close()
    settle("three for each again", [staying, joining], [3, 3])
    expect_within(staying_kept, staying.partitions)
    expect_within(joining_had, joining.partitions)
    staying.close()
    joining.close()
    return None


def custom(scene: Scene) -> Said:
    members = [Member(scene, partition_assignment_strategy=[WishAssignor(wish)]) for wish in wishes.WISHES]
    wanted = [set(wishes.indexes(wish.encode())) for wish in wishes.WISHES]
    settle("to each as many as it wished for, all records", members, [len(each) for each in wanted], 60)
    wait_until("to each what it wished for", lambda: [member.partitions for member in members] == wanted)
    for member in members:
        member.close()
    return None


class WishAssignor(AbstractPartitionAssignor):  # type: ignore[misc]
    name = wishes.NAME
    version = 0

    def __init__(self, wish: str) -> None:
        self._wish = wish

    def metadata(self, topics: Any) -> ConsumerProtocolSubscription:
        return ConsumerProtocolSubscription(self.version, list(topics), self._wish.encode())

    def assign(self, cluster: Any, members: Any) -> dict[str, ConsumerProtocolAssignment]:
        return {member.member_id: self._granted(member.metadata) for member in members}

    def _granted(self, metadata: ConsumerProtocolSubscription) -> ConsumerProtocolAssignment:
        (topic,) = metadata.topics
        return ConsumerProtocolAssignment(self.version, [(topic, wishes.indexes(metadata.user_data))], b"")

    def on_assignment(self, assignment: ConsumerProtocolAssignment, generation: int) -> None:
        pass
