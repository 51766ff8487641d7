"""Fail-over: how long it takes from SIGKILL of a leader to the first acknowledgement of a record that was sent later.

One partition, three replicas, acks=all; a record every 10 ms by librdkafka with short back-offs, so that the figure is
the cluster's and not the client's patience. Victims: a leader that is not the controller, and one that is.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from confluent_kafka import KafkaError, Message, Producer

from broker_engine.simulator.history.rows import Partition
from tests.chaos.asking import ask_election
from tests.chaos.cluster import Cluster
from tests.chaos.load import CLIENT, RECONNECT

SEND_INTERVAL_S = 0.01
ANSWER_TIMEOUT_S = 60.0
BARS_S = {"leader that is not the controller": 1.5, "leader that is the controller": 2.0}


class Beat:
    """A producer that sends all the time, and knows when what it sent last was acknowledged."""

    def __init__(self, bootstrap: str, partition: Partition) -> None:
        settings = {"bootstrap.servers": bootstrap, "acks": "all", "enable.idempotence": True, "linger.ms": 0}
        settings |= {"retry.backoff.ms": 10, "retry.backoff.max.ms": 100, "request.timeout.ms": 5_000}
        self._producer = Producer({**settings, **CLIENT, **RECONNECT})
        self._partition = partition
        self._answered = threading.Condition()
        self._last = (0.0, 0.0)
        """When the newest acknowledged record was sent, and when it was acknowledged."""
        self._is_over = False
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> Beat:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_over = True
        self._thread.join()

    def first_answer_after(self, moment: float) -> float:
        """Seconds between the moment and the first acknowledgement of what was sent after it."""
        with self._answered:
            is_there = self._answered.wait_for(lambda: self._last[0] > moment, ANSWER_TIMEOUT_S)
            assert is_there, f"no acknowledgement within {ANSWER_TIMEOUT_S:.0f} s"
            return self._last[1] - moment

    def _run(self) -> None:
        topic, number = self._partition
        while not self._is_over:
            sent = time.monotonic()
            if len(self._producer) < 50_000:
                self._producer.produce(topic, b"beat", partition=number, on_delivery=self._delivered(sent))
            self._producer.poll(SEND_INTERVAL_S)
            time.sleep(max(0.0, sent + SEND_INTERVAL_S - time.monotonic()))
        self._producer.purge()
        self._producer.flush(5)

    def _delivered(self, sent: float) -> Callable[[KafkaError | None, Message], None]:
        def on_delivery(error: KafkaError | None, _: Message) -> None:
            if error is None:
                with self._answered:
                    self._last = (sent, time.monotonic())
                    self._answered.notify_all()

        return on_delivery


class Killable(Protocol):
    """What a fail-over needs of a cluster: ours, or Kafka's in the benchmark."""

    @property
    def bootstrap(self) -> str: ...

    def leader_of(self, partition: Partition) -> int: ...

    def controller_id(self) -> int: ...

    def kill(self, node_id: int) -> None: ...

    def launch(self, node_ids: Iterable[int]) -> None: ...

    def wait_until_whole(self, topics: Sequence[str]) -> float: ...


@dataclass(slots=True)
class Timing:
    """Leaders are put back to their preferred broker before each kill, so that both sorts of victim are there."""

    cluster: Killable
    partitions: tuple[Partition, ...]

    def kill_leader(self, *, is_controller: bool) -> float:
        partition, victim = self._wait_for_victim(is_controller)
        with Beat(self.cluster.bootstrap, partition) as beat:
            beat.first_answer_after(time.monotonic())
            moment = time.monotonic()
            self.cluster.kill(victim)
            took_s = beat.first_answer_after(moment)
        self.cluster.launch([victim])
        self.cluster.wait_until_whole([partition[0]])
        return took_s

    def _wait_for_victim(self, is_controller: bool) -> tuple[Partition, int]:
        deadline = time.monotonic() + ANSWER_TIMEOUT_S
        while time.monotonic() < deadline:
            ask_election(self.cluster.bootstrap.split(","), self.partitions)
            controller = self.cluster.controller_id()
            for partition in self.partitions:
                leader = self.cluster.leader_of(partition)
                if leader >= 0 and controller >= 0 and (leader == controller) == is_controller:
                    return partition, leader
            time.sleep(0.1)
        raise AssertionError("no partition has the leader that is to be killed")


def run(folder: Path, kill_count: int, say: Callable[[str], None]) -> list[str]:
    """`kill_count` kills of each sort; a table."""
    say(f"-- fail-over: {kill_count} kills of each sort of leader")
    times_s: dict[str, list[float]] = {}
    with Cluster(folder, 3) as cluster:
        timing = Timing(cluster, cluster.create_topic("failover", 3))
        for number in range(kill_count):
            for victim in BARS_S:
                took_s = timing.kill_leader(is_controller=victim == "leader that is the controller")
                times_s.setdefault(victim, []).append(took_s)
                say(f"   {number + 1:>3}/{kill_count} SIGKILL of a {victim}: {took_s:.2f} s")
    return [_line(victim, taken) for victim, taken in times_s.items()]


def _line(victim: str, taken: Sequence[float]) -> str:
    p50, p95 = percentile(taken, 0.5), percentile(taken, 0.95)
    verdict = "ok" if p95 <= BARS_S[victim] else "SHORT"
    figures = f"p50 {p50:.2f} s, p95 {p95:.2f} s, longest {max(taken):.2f} s"
    return f"-- SIGKILL of a {victim}, {len(taken)} kills: {figures}; bar p95 <= {BARS_S[victim]} s: {verdict}"


def percentile(values: Sequence[float], share: float) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, round(share * (len(ordered) - 1)))]
