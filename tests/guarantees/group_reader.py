"""A member of a group as a process of the lab: it reads, works, commits in one order or another, and dies when told to.

`done` in the folder lists the values whose work was done, one line each, by whichever process.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition

from tests.chaos.load import CLIENT, RECONNECT, polled

SESSION_MS = 2_000
POLL_S = 0.1


class Order(Enum):
    COMMIT_FIRST = "commit first"
    WORK_FIRST = "work first"
    AUTO = "auto"
    """librdkafka commits by itself what was handed over, at its interval."""
    ON_REVOKE = "on revoke"
    """Work first; committed when partitions are taken away, and at the end."""


@dataclass(frozen=True, slots=True)
class ReaderPlan:
    bootstrap: str
    topic: str
    partition_count: int
    folder: Path
    order: Order
    batch: int = 20
    dies_at: int | None = None
    """Kills itself between the two steps of the batch that gets it beyond so many records."""
    stays_at: int | None = None
    """Reads no further than this without ever committing; it goes on heartbeating until somebody kills it."""
    settings: dict[str, object] = field(default_factory=dict)

    @property
    def done(self) -> Path:
        return self.folder / "done"


def read(plan: ReaderPlan) -> None:
    """Until every partition is read to its end."""
    Reader(plan).run()


class Reader:
    def __init__(self, plan: ReaderPlan) -> None:
        self._plan, self._count = plan, 0
        settings = {"bootstrap.servers": plan.bootstrap, "group.id": "readers", "enable.auto.commit": False}
        settings |= {"session.timeout.ms": SESSION_MS, "heartbeat.interval.ms": 200, "fetch.wait.max.ms": 50}
        settings |= {"auto.offset.reset": "earliest", "enable.partition.eof": True}
        self._consumer = Consumer({**settings, **CLIENT, **RECONNECT, **plan.settings})
        self._uncommitted: dict[tuple[str, int], int] = {}
        self._ended: set[int] = set()

    def run(self) -> None:
        self._consumer.subscribe([self._plan.topic], on_assign=self._on_assign, on_revoke=self._on_revoke)
        while len(self._ended) < self._plan.partition_count:
            if self._must_stay:
                self._consumer.pause(self._consumer.assignment())
            messages = self._consumer.consume(self._plan.batch, timeout=POLL_S)
            self._note_ends(messages)
            self._handle([message for message in messages if message.error() is None])
        if self._plan.order is Order.ON_REVOKE:
            self._commit()
        self._consumer.close()

    def _handle(self, messages: Sequence[Message]) -> None:
        if not messages:
            return
        self._count += len(messages)
        for partition, records in polled(messages).items():
            self._uncommitted[partition] = records[-1][0] + 1
        values = [bytes(message.value() or b"").decode() for message in messages]
        match self._plan.order:
            case Order.COMMIT_FIRST:
                self._commit()
                self._die_if_told()
                self._work(values)
            case Order.WORK_FIRST:
                self._work(values)
                self._die_if_told()
                if self._plan.stays_at is None:
                    self._commit()
            case Order.ON_REVOKE:
                self._work(values)
            case Order.AUTO:
                self._let_auto_commit(values)

    def _let_auto_commit(self, values: Sequence[str]) -> None:
        """At a short interval the offset is stored while the work is under way; at a long one, long after it."""
        is_quick = int(str(self._plan.settings["auto.commit.interval.ms"])) < SESSION_MS
        if is_quick and self._is_told_to_die():
            while not self._is_committed():
                pass  # each look asks the coordinator
            self._die_if_told()
        self._work(values)
        self._die_if_told()

    def _work(self, values: Sequence[str]) -> None:
        with self._plan.done.open("a") as file:
            file.writelines(f"{value}\n" for value in values)

    def _commit(self) -> None:
        offsets = [TopicPartition(*partition, offset) for partition, offset in self._uncommitted.items()]
        if offsets:
            self._consumer.commit(offsets=offsets, asynchronous=False)
        self._uncommitted.clear()

    def _is_committed(self) -> bool:
        known = self._consumer.committed([TopicPartition(*partition) for partition in self._uncommitted], timeout=10)
        return all(part.offset >= self._uncommitted[part.topic, part.partition] for part in known)

    def _is_told_to_die(self) -> bool:
        return self._plan.dies_at is not None and self._count > self._plan.dies_at

    def _die_if_told(self) -> None:
        if self._is_told_to_die():
            os.kill(os.getpid(), signal.SIGKILL)

    def _note_ends(self, messages: Sequence[Message]) -> None:
        for message in messages:
            error = message.error()
            if error is None:
                continue
            if error.code() != KafkaError._PARTITION_EOF:
                raise KafkaException(error)
            self._ended.add(int(message.partition() or 0))

    @property
    def _must_stay(self) -> bool:
        return self._plan.stays_at is not None and self._count >= self._plan.stays_at

    def _on_assign(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        consumer.assign(partitions)
        if self._must_stay:
            consumer.pause(partitions)
        (self._plan.folder / f"assigned-{os.getpid()}").touch()
        self._ended.clear()

    def _on_revoke(self, _: Consumer, __: list[TopicPartition]) -> None:
        if self._plan.order is Order.ON_REVOKE:
            self._commit()
        self._uncommitted.clear()
        self._ended.clear()
