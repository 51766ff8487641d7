"""The lab: three real brokers behind proxies, and clients that note what they are told."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count

from confluent_kafka import KafkaError, Message, Producer

from broker_engine.simulator.history import Allowed, History, Kind, Report, Send, check
from broker_engine.simulator.history.rows import Partition
from tests.chaos.cluster import Cluster
from tests.chaos.load import CLIENT, RECONNECT, add_polls, end_offset, open_consumer

ANSWER_TIMEOUT_S = 60.0
READ_TIMEOUT_S = 60.0
POLL_S = 0.02
EVERYTHING = frozenset(Kind)


@dataclass(slots=True)
class Lab:
    cluster: Cluster
    _numbers: Iterator[int] = field(default_factory=lambda: count(1))

    def topic(self, *, partition_count: int = 1, replication_factor: int = 3, **configs: str) -> Partition:
        """The first partition of a fresh topic."""
        name = f"story-{next(self._numbers)}"
        return self.cluster.create_topic(name, partition_count, replication_factor=replication_factor, **configs)[0]

    def roles(self, partition: Partition) -> tuple[int, list[int]]:
        """The leader, and the others that hold the partition."""
        leader = self.cluster.leader_of(partition)
        known = self.cluster.known_to(leader, partition)
        assert known is not None, f"{leader} leads and does not answer"
        return leader, [node_id for node_id in known.replicas if node_id != leader]

    def isr(self, partition: Partition, node_id: int) -> list[int]:
        """As that node knows it."""
        known = self.cluster.known_to(node_id, partition)
        return [] if known is None else sorted(known.isr)

    def wait_until(self, is_so: Callable[[], bool], what: str, timeout_s: float = 60.0) -> None:
        deadline = time.monotonic() + timeout_s
        while not is_so():
            assert time.monotonic() < deadline, f"after {timeout_s:.0f} s not yet: {what}"
            time.sleep(POLL_S)

    @contextmanager
    def paused(self, node_ids: list[int]) -> Iterator[None]:
        for node_id in node_ids:
            self.cluster.nodes[node_id].pause()
        try:
            yield
        finally:
            for node_id in node_ids:
                if self.cluster.nodes[node_id].is_running:
                    self.cluster.nodes[node_id].resume()

    def read_back(self, history: History, partition: Partition) -> Report:
        """Reads the whole partition and holds it against what was acknowledged. What is promised, the story judges."""
        consumer = open_consumer(self.cluster.bootstrap, [partition])
        history.ok("reader", "assign", time=time.monotonic())
        end = end_offset(consumer, partition)
        position, deadline = 0, time.monotonic() + READ_TIMEOUT_S
        while position < end:
            assert time.monotonic() < deadline, f"only {position} of {end} could be read"
            messages = consumer.consume(500, timeout=0.2)
            add_polls(history, "reader", messages)
            offsets = [message.offset() or 0 for message in messages if message.error() is None]
            position = max([position, *(offset + 1 for offset in offsets)])
        consumer.close()
        return check(history, Allowed(kinds=EVERYTHING))


class Sender:
    """One producer; `send` hands records over, `wait` until all are answered or given up."""

    def __init__(
        self, lab: Lab, history: History, partition: Partition, *, prefix: str = "record-", **settings: object
    ) -> None:
        base = {"bootstrap.servers": lab.cluster.bootstrap, "linger.ms": 0, "request.timeout.ms": 3_000}
        base |= {"retry.backoff.ms": 20, "retry.backoff.max.ms": 200, "message.timeout.ms": 60_000}
        self._producer = Producer({**base, **CLIENT, **RECONNECT, **settings})
        self._history, self._partition, self._prefix = history, partition, prefix
        self._numbers = count()
        self.answered = 0
        self.acked = 0
        self.errors: list[int] = []

    def send(self, record_count: int) -> None:
        for _ in range(record_count):
            value = f"{self._prefix}{next(self._numbers)}"
            self._history.invoke("sender", "send", [Send(self._partition, value)], time=time.monotonic())
            topic, number = self._partition
            self._producer.produce(topic, value, partition=number, on_delivery=self._noting(value))
            self._producer.poll(0)

    def wait(self, acked: int | None = None) -> None:
        """For all answers, or until so many are acknowledged."""
        deadline = time.monotonic() + ANSWER_TIMEOUT_S
        while len(self._producer) and (acked is None or self.acked < acked):
            assert time.monotonic() < deadline, f"{len(self._producer)} records without an answer"
            self._producer.poll(0.02)

    def _noting(self, value: str) -> Callable[[KafkaError | None, Message], None]:
        def on_delivery(error: KafkaError | None, message: Message) -> None:
            self.answered += 1
            if error is not None:
                self.errors.append(error.code())
                self._history.info("sender", "send", [Send(self._partition, value)], time=time.monotonic())
                return
            self.acked += 1
            offset = message.offset()
            known = offset if offset is not None and offset >= 0 else None
            self._history.ok("sender", "send", [Send(self._partition, value, known)], time=time.monotonic())

        return on_delivery
