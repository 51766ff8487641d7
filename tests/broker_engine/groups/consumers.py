"""A group of the consumer protocol that tests move through: its topics, its clock, and members that answer honestly."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any
from uuid import UUID

from broker_engine.errors import BrokerError, ErrorCode
from broker_engine.groups.consumer.assignors import TopicSpec
from broker_engine.groups.consumer.change import Change, Now
from broker_engine.groups.consumer.group import ConsumerGroup
from broker_engine.groups.consumer.heartbeat import heartbeat, is_leaving, leave, on_time, quick_answer
from broker_engine.groups.consumer.member import HeartbeatAnswer, HeartbeatAsk
from broker_engine.groups.consumer.partitions import Partitions
from broker_engine.groups.consumer.records import ConsumerRecord, decode_consumer_key, decode_consumer_value, encode
from broker_engine.groups.settings import ConsumerSettings

REBALANCE_MS = 60_000


class FakeTopics:
    """Names without a tenant; `change` makes another version."""

    def __init__(self, **counts: int) -> None:
        self._topics: dict[str, TopicSpec] = {}
        self.version: object = object()
        self.number = 0
        self.change(**counts)

    def change(self, **counts: int) -> None:
        """0 deletes."""
        self.version, self.number = object(), self.number + 1
        for name, partition_count in counts.items():
            before = self._topics.pop(name, None)
            if partition_count:
                topic_id = UUID(int=1000 * self.number + len(name)) if before is None else before.id
                self._topics[name] = TopicSpec(topic_id, name, partition_count)

    def find(self, name: str) -> TopicSpec | None:
        return self._topics.get(name)

    def find_id(self, topic_id: UUID) -> TopicSpec | None:
        return next((topic for topic in self._topics.values() if topic.id == topic_id), None)

    def short_names(self) -> Collection[str]:
        return self._topics.keys()

    def physical(self, short_name: str) -> str:
        return short_name

    def short(self, name: str) -> str:
        return name


class ConsumerBench:
    def __init__(self, topics: FakeTopics | None = None, **settings: Any) -> None:
        self.topics = topics or FakeTopics(orders=6)
        self.group = ConsumerGroup("readers", ConsumerSettings(**settings))
        self.log: list[ConsumerRecord] = []
        self.now_ms = 0

    # --- what is asked

    def ask(self, member_id: str, epoch: int, **fields: Any) -> HeartbeatAnswer:
        ask = HeartbeatAsk(member_id=member_id, epoch=epoch, client_id="c", client_host="/h", **fields)
        quick = quick_answer(self.group, ask, self.topics, self.now_ms)
        if quick is not None:
            return quick
        change = self.change()
        answer = leave(change, ask) if is_leaving(ask) else heartbeat(change, ask)
        self.keep(change)
        return answer

    def join(self, member_id: str, *names: str, **fields: Any) -> HeartbeatAnswer:
        given: dict[str, Any] = {
            "rebalance_timeout_ms": REBALANCE_MS,
            "topic_names": frozenset(names or ("orders",)),
            "owned": {},
            **fields,
        }
        return self.ask(member_id, 0, **given)

    def code(self, member_id: str, epoch: int, **fields: Any) -> ErrorCode:
        try:
            self.ask(member_id, epoch, **fields)
        except BrokerError as error:
            return error.code
        return ErrorCode.NONE

    def wait(self, wait_ms: int) -> None:
        until_ms = self.now_ms + wait_ms
        while (deadline_ms := self.group.next_deadline_ms) is not None and deadline_ms <= until_ms:
            self.now_ms = max(self.now_ms, deadline_ms)
            change = self.change()
            on_time(change)
            self.keep(change)
        self.now_ms = until_ms

    # --- the log

    def change(self) -> Change:
        return Change(self.group, self.topics, Now(self.now_ms, 1_000_000 + self.now_ms))

    def keep(self, change: Change) -> None:
        self.log += change.records
        self.group = change.group

    def fail_over(self) -> None:
        """Another coordinator reads the log."""
        group = ConsumerGroup(self.group.name, self.group.settings)
        for record in self.log:
            key, value = encode(record)
            decoded = decode_consumer_key(record.key.number, key[2:])
            replayed = ConsumerRecord(decoded, None if value is None else decode_consumer_value(decoded, value))
            group.replay(replayed, self.now_ms)
        group.begin_here(self.now_ms)
        self.group = group

    # --- what is

    def held(self, member_id: str) -> list[int]:
        """Partition numbers of everything that it may use."""
        assigned = self.group.members[member_id].standing.assigned
        return sorted(index for indexes in assigned.values() for index in indexes)


def settle(bench: ConsumerBench, *member_ids: str) -> None:
    """Everybody reports honestly what it holds, until nothing moves any more."""
    bench.wait(bench.group.settings.assignment_interval_ms)
    for _ in range(10):
        for member_id in member_ids:
            member = bench.group.members[member_id]
            bench.ask(member_id, member.epoch, owned=owned(bench, member_id))


def owned(bench: ConsumerBench, member_id: str) -> Partitions:
    assigned = bench.group.members[member_id].standing.assigned
    return {topic_id: frozenset(indexes) for topic_id, indexes in assigned.items()}
