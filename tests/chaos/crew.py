"""Clients in processes of their own, that can be killed and come back: members of a group, and transformers.

`with Crew(...) as crew:` they work; `crew.kill_one(random)` ends one by SIGKILL and starts it anew;
`crew.replace_one(random)` makes a zombie; `crew.finish()` waits until every group has read everything;
`crew.entries(group)` is what its clients noted.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from multiprocessing.process import BaseProcess
from pathlib import Path
from random import Random
from typing import Any, Self

from confluent_kafka import Consumer, KafkaException, TopicPartition

from broker_engine.simulator.history.rows import Partition
from tests.chaos.journal import Entry, read_journal
from tests.chaos.load import CLIENT, RECONNECT
from tests.chaos.member import MemberPlan, run_member
from tests.chaos.signals import Signals, context, wait_for
from tests.chaos.transformer import Transform, TransformerPlan, run_transformer
from tests.chaos.watchdog import HUNG_EXIT

CATCH_UP_S = 90.0
STOP_S = 60.0
POLL_S = 0.1
BUSY_S = 3.0
"""Within which a transformer that has something to do begins a transaction."""
INIT_S = 20.0
"""Within which its successor has an epoch, or the brokers are away for longer."""


@dataclass(slots=True)
class Life:
    process: BaseProcess
    signals: Signals
    journal: Path

    def end(self) -> None:
        self.process.kill()
        self.process.join()


@dataclass(slots=True)
class Client:
    """One client over all its lives."""

    name: str
    group: str
    folder: Path
    target: Callable[..., None]
    plan_of: Callable[[int], Any]
    """The plan of its nth life."""
    is_transactional: bool = False
    lives: list[Life] = field(default_factory=list)
    """The last one works; others may, when it took their place."""

    @property
    def life(self) -> Life:
        return self.lives[-1]

    def start(self) -> None:
        number, signals = len(self.lives) + 1, Signals()
        journal = self.folder / f"{self.name}.{number}.journal"
        arguments = (self.plan_of(number), self.name, journal, signals)
        process = context.Process(target=self.target, args=arguments, daemon=True)
        process.start()
        self.lives.append(Life(process, signals, journal))

    def replace(self) -> str:
        """The one that works is stopped, within a transaction if it can be had; another begins; the first goes on."""
        old = self.life
        if not old.process.is_alive():
            return f"{self.name} had ended already"
        wait_for(old.signals.is_in_transaction.is_set, BUSY_S)
        old.signals.is_replaced.set()
        os.kill(_pid(old.process), signal.SIGSTOP)
        where = "within" if old.signals.is_in_transaction.is_set() else "between"
        try:
            self.start()
            has_epoch = wait_for(self.life.signals.has_epoch.is_set, INIT_S)
        finally:
            os.kill(_pid(old.process), signal.SIGCONT)
        return f"{self.name} stopped {where} transactions; {'' if has_epoch else 'not yet '}replaced, then it goes on"

    def revive(self) -> None:
        """A client that was ended because librdkafka hung in it comes back."""
        if self.life.process.exitcode == HUNG_EXIT:
            self.start()

    def end(self) -> None:
        for life in self.lives:
            life.end()

    def stop(self) -> str:
        """Empty, or what is wrong. Those that were replaced may end as they like."""
        for life in self.lives:
            life.signals.must_stop.set()
        self.life.process.join(STOP_S)
        code = self.life.process.exitcode
        self.end()
        return "" if code in (0, HUNG_EXIT) else f"client {self.name} ended with {code}"


def _pid(process: BaseProcess) -> int:
    assert process.pid is not None
    return process.pid


@dataclass(slots=True)
class Crew:
    bootstrap: str
    folder: Path
    clients: list[Client] = field(default_factory=list)
    started: float = field(default_factory=time.monotonic)

    def add_member(self, name: str, group: str, topics: Sequence[str], **settings: object) -> None:
        plan = MemberPlan(self.bootstrap, group, tuple(topics), settings)
        self.clients.append(Client(name, group, self.folder, run_member, lambda _: plan))

    def add_transformer(
        self, name: str, group: str, topics: Sequence[str], transform: Transform, **settings: object
    ) -> None:
        def plan_of(life: int) -> TransformerPlan:
            return TransformerPlan(self.bootstrap, group, f"{group}-{name}", tuple(topics), transform, life, settings)

        self.clients.append(Client(name, group, self.folder, run_transformer, plan_of, is_transactional=True))

    def __enter__(self) -> Self:
        for client in self.clients:
            client.start()
        return self

    def __exit__(self, *_: object) -> None:
        for client in self.clients:
            client.end()

    def kill_one(self, random: Random) -> str:
        client = random.choice(self.clients)
        client.life.end()
        client.start()
        return client.name

    def replace_one(self, random: Random) -> str:
        """A zombie: its transactional id is somebody else's by now, and it does not know."""
        transformers = [client for client in self.clients if client.is_transactional]
        return random.choice(transformers).replace() if transformers else "nobody has a transactional id"

    def revive(self) -> None:
        for client in self.clients:
            client.revive()

    def finish(self, partitions: Mapping[str, Sequence[Partition]]) -> list[str]:
        """Waits until each group has committed the end of all its partitions; then they end. What went wrong."""
        deadline = time.monotonic() + CATCH_UP_S
        problems = []
        for group, wanted in partitions.items():
            while missing := self._behind(group, wanted):
                self.revive()
                if time.monotonic() > deadline:
                    problems.append(f"group {group} did not read to the end: {missing}")
                    break
                time.sleep(POLL_S)
        return problems + [text for client in self.clients if (text := client.stop())]

    def _behind(self, group: str, partitions: Sequence[Partition]) -> str:
        settings = {"bootstrap.servers": self.bootstrap, "group.id": group, **CLIENT, **RECONNECT}
        consumer = Consumer({**settings, "isolation.level": "read_committed"})
        try:
            known = consumer.committed([TopicPartition(*part) for part in partitions], timeout=5)
            ends = {part: consumer.get_watermark_offsets(TopicPartition(*part), timeout=5)[1] for part in partitions}
        except KafkaException as error:
            return str(error)
        finally:
            consumer.close()
        behind = [part for part in known if part.offset < ends[part.topic, part.partition]]
        behind = [part for part in behind if ends[part.topic, part.partition] > 0]
        return ", ".join(f"{part.topic}-{part.partition} {part.offset} of {ends[part.topic, part.partition]}"
                         for part in behind)  # fmt: skip

    def entries(self, group: str) -> list[Entry]:
        lives = [life for client in self.clients if client.group == group for life in client.lives]
        return [entry for life in lives for entry in read_journal(life.journal)]
