"""A member of a consumer group in a process of its own: reads, notes what it read, and only then commits.

By the classic protocol, or by the new one (KIP-848, `group.protocol=consumer`): there the brokers set session and
heartbeat, and partitions come and go one by one.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaException, Message, TopicPartition

from broker_engine.simulator.history.rows import Partition, Poll
from tests.chaos.journal import Asked, Commit, Fetched, Journal
from tests.chaos.load import CLIENT, RECONNECT, polled
from tests.chaos.signals import Signals

COMMIT_EVERY = 200
POLL_RECORDS = 100
FETCH_TIMEOUT_S = 10.0
SESSION_MS, HEARTBEAT_MS = 4_000, 500
NEW_PROTOCOL: dict[str, object] = {"group.protocol": "consumer"}


@dataclass(frozen=True, slots=True)
class MemberPlan:
    bootstrap: str
    group: str
    topics: tuple[str, ...]
    settings: dict[str, object] = field(default_factory=dict)
    """For example group.instance.id, or group.protocol."""


def is_new_protocol(settings: Mapping[str, object]) -> bool:
    return settings.items() >= NEW_PROTOCOL.items()


def group_settings(bootstrap: str, group: str, more: Mapping[str, object]) -> dict[str, object]:
    base: dict[str, object] = {"bootstrap.servers": bootstrap, "group.id": group, "enable.auto.commit": False}
    if not is_new_protocol(more):
        base |= {"session.timeout.ms": SESSION_MS, "heartbeat.interval.ms": HEARTBEAT_MS}
    base |= {"max.poll.interval.ms": 60_000, "auto.offset.reset": "earliest"}
    base |= {"fetch.wait.max.ms": 100, "fetch.error.backoff.ms": 20}
    return {**base, **CLIENT, **RECONNECT, **more}


def check_alive(messages: Sequence[Message]) -> None:
    """A client that librdkafka has given up ends its process; whoever looks after the crew is told."""
    for message in messages:
        error = message.error()
        if error is not None and error.fatal():
            raise KafkaException(error)


def run_member(plan: MemberPlan, name: str, path: Path, signals: Signals) -> None:
    with Journal(path, name) as journal:
        Member(plan, journal).run(signals.must_stop.is_set)


class Member:
    def __init__(self, plan: MemberPlan, journal: Journal) -> None:
        self._plan, self._journal = plan, journal
        self._consumer = Consumer(group_settings(plan.bootstrap, plan.group, plan.settings))
        self._positions: dict[Partition, int] = {}
        """Next offset of what was read and not yet committed."""
        self._uncommitted = 0

    def run(self, is_over: Callable[[], bool]) -> None:
        self._consumer.subscribe(list(self._plan.topics), on_assign=self._on_assign, on_revoke=self._on_revoke,
                                 on_lost=self._on_lost)  # fmt: skip
        while not is_over():
            messages = self._consumer.consume(POLL_RECORDS, timeout=0.2)
            check_alive(messages)
            self._note([message for message in messages if message.error() is None])
            if self._uncommitted >= COMMIT_EVERY or (self._uncommitted and not messages):
                self._commit()
        self._consumer.close()

    def _note(self, messages: Sequence[Message]) -> None:
        records = polled(messages)
        if records:
            self._journal.row("poll", "ok", *(Poll(partition, tuple(part)) for partition, part in records.items()))
        for partition, part in records.items():
            self._positions[partition] = part[-1][0] + 1
        self._uncommitted += len(messages)

    def _commit(self) -> None:
        offsets = [TopicPartition(*partition, offset) for partition, offset in self._positions.items()]
        for partition, offset in self._positions.items():
            self._journal.add(Asked(partition, offset))
        invoked = time.monotonic()
        try:
            done = self._consumer.commit(offsets=offsets, asynchronous=False) or []
        except KafkaException:
            taken = set[Partition]()
        else:
            taken = {(part.topic, part.partition) for part in done if part.error is None}
        returned = time.monotonic()
        for partition, offset in self._positions.items():
            self._journal.add(Commit(partition, offset, invoked, returned, partition in taken))
        self._forget(taken)

    def _forget(self, partitions: set[Partition]) -> None:
        """What could not be committed is tried again with the next ones."""
        self._positions = {part: offset for part, offset in self._positions.items() if part not in partitions}
        self._uncommitted = COMMIT_EVERY if self._positions else 0

    def _on_assign(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        """Begins at what the group committed, and notes what that was."""
        self._journal.row("assign", "ok")
        invoked = time.monotonic()
        try:
            known = consumer.committed(partitions, timeout=FETCH_TIMEOUT_S)
        except KafkaException:
            return  # librdkafka asks again by itself
        for part in known:
            if part.error is not None:
                return
            self._journal.add(Fetched((part.topic, part.partition), max(-1, part.offset), invoked))
        assign = consumer.incremental_assign if is_new_protocol(self._plan.settings) else consumer.assign
        assign([
            TopicPartition(part.topic, part.partition, part.offset if part.offset >= 0 else OFFSET_BEGINNING)
            for part in known
        ])  # fmt: skip

    def _on_revoke(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        if self._positions:
            self._commit()
        self._on_lost(consumer, partitions)

    def _on_lost(self, _: Consumer, partitions: list[TopicPartition]) -> None:
        self._forget({(part.topic, part.partition) for part in partitions})
