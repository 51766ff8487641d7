"""kafka-python: several members of one group."""

from __future__ import annotations

import threading
import time
from typing import Any

from kafka import (
    ConsumerRebalanceListener,
)
from kafka.coordinator.assignors.cooperative_sticky import CooperativeStickyAssignor
from kafka.coordinator.assignors.range import RangePartitionAssignor

from tests.compatibility.python_drivers.common import (
    PATIENCE_S,
    Said,
    Scene,
    expect_equal,
    wait_until,
)
from tests.compatibility.python_drivers.kpython.clients import consumer, polled


class Member(ConsumerRebalanceListener):  # type: ignore[misc]
    def __init__(self, scene: Scene, **settings: Any) -> None:
        self.read: set[tuple[int, int]] = set()
        self.assigned = self.revoked = 0
        self.partitions: set[int] = set()
        self.problem: Exception | None = None
        self._is_closing = False
        self._reader = consumer(scene, **settings)
        self._reader.subscribe([scene.topic], listener=self)
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def on_partitions_assigned(self, assigned: Any) -> None:
        self.assigned += len(assigned)

    def on_partitions_revoked(self, revoked: Any) -> None:
        self.revoked += len(revoked)

    def _run(self) -> None:
        try:
            while not self._is_closing:
                self.read |= {(record.partition, record.offset) for record in polled(self._reader, 50)}
                self.partitions = {each.partition for each in self._reader.assignment()}
            for each in self._reader.assignment():
                self._reader.position(each)  # without one there is nothing to commit
            self._reader.commit()  # so that the group is still there to be looked at
        except Exception as error:
            self.problem = error
        finally:
            self._reader.close()

    def close(self) -> None:
        self._is_closing = True
        self._thread.join(PATIENCE_S)


def settle(what: str, members: list[Member], owned: list[int], records: int = 0) -> None:
    def settled() -> bool:
        for member in members:
            if member.problem:
                raise member.problem
        time.sleep(0.02)  # between two looks
        seen = set().union(*(member.read for member in members))
        return [len(member.partitions) for member in members] == owned and len(seen) >= records

    wait_until(what, settled)


def group(scene: Scene) -> Said:
    members = [Member(scene) for _ in range(3)]
    settle("two partitions for each, all records", members, [2, 2, 2], 60)
    for member in members:
        member.close()
    return None


def cooperative(scene: Scene) -> Said:
    settings = {"partition_assignment_strategy": [CooperativeStickyAssignor]}
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
    settings = {"partition_assignment_strategy": [RangePartitionAssignor]}
    first = Member(scene, **settings)
    settle("all four", [first], [4])
    expect_equal(first.assigned, 4, "partitions that the listener heard of")
    second = Member(scene, **settings)
    settle("two for each", [first, second], [2, 2])
    assert first.revoked >= 4, f"an eager member gives up everything: {first.revoked}"
    first.close()
    second.close()
    return None
