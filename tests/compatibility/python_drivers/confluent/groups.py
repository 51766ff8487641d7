"""confluent-kafka (librdkafka): several members of one group."""

from __future__ import annotations

from confluent_kafka import (
    Consumer,
    KafkaException,
    TopicPartition,
)

from tests.compatibility.python_drivers.common import (
    Said,
    Scene,
    expect_equal,
    wait_until,
)
from tests.compatibility.python_drivers.confluent.clients import (
    consumer,
)


class Member:
    def __init__(self, scene: Scene, **settings: object) -> None:
        self.read: list[tuple[int, int]] = []
        self.assigned = self.revoked = 0
        self._topic = scene.topic
        self._reader = consumer(scene, **settings)
        self._reader.subscribe([scene.topic], on_assign=self._on_assign, on_revoke=self._on_revoke)

    def _on_assign(self, _: Consumer, partitions: list[TopicPartition]) -> None:
        self.assigned += len(partitions)

    def _on_revoke(self, _: Consumer, partitions: list[TopicPartition]) -> None:
        self.revoked += len(partitions)

    @property
    def owned(self) -> int:
        return len(self._reader.assignment())

    def poll(self) -> None:
        for message in self._reader.consume(100, timeout=0.05):
            if message.error():
                raise KafkaException(message.error())
            self.read.append((message.partition(), message.offset()))

    def close(self) -> None:
        for partition, offset in self.read[-1:]:  # so that the group is still there to be looked at
            last = TopicPartition(self._topic, partition, offset + 1)
            self._reader.commit(offsets=[last], asynchronous=False)
        self._reader.close()


def settle(what: str, members: list[Member], owned: list[int], records: int = 0) -> None:
    def settled() -> bool:
        for member in members:
            member.poll()
        seen = {record for member in members for record in member.read}
        return [member.owned for member in members] == owned and len(seen) >= records

    wait_until(what, settled)


def group(scene: Scene, **settings: object) -> Said:
    members = [Member(scene, **settings) for _ in range(3)]
    settle("two partitions for each, all records", members, [2, 2, 2], 60)
    for member in members:
        member.close()
    return None


def cooperative(scene: Scene) -> Said:
    settings = {"partition_assignment_strategy": "cooperative-sticky"}
    first = Member(scene, **settings)
    settle("all four", [first], [4])
    second = Member(scene, **settings)
    settle("two for each", [first, second], [2, 2])
    expect_equal(first.revoked, 2, "partitions taken from the first")
    first.close()
    second.close()
    return None


def static_member(scene: Scene) -> Said:
    for _ in range(2):
        member = Member(scene, group_instance_id="fixed", session_timeout_ms=120_000)
        settle("its partition", [member], [1])
        member.close()
    return None


def rebalance_listener(scene: Scene) -> Said:
    first = Member(scene, partition_assignment_strategy="range")
    settle("all four", [first], [4])
    expect_equal(first.assigned, 4, "partitions that on_assign heard of")
    second = Member(scene, partition_assignment_strategy="range")
    settle("two for each", [first, second], [2, 2])
    assert first.revoked >= 4, f"an eager member gives up everything: {first.revoked}"
    first.close()
    second.close()
    return None
