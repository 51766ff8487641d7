"""A whole run: which faults, how many rounds of each, in acts that share one cluster."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

from tests.chaos.act import Act
from tests.chaos.cluster import Cluster
from tests.chaos.faults import FAULTS, Fault
from tests.chaos.machine_faults import FAKETIME_LIBRARY, ClockJump, DiskFull, clock_environment, small_disks
from tests.chaos.member import HEARTBEAT_MS, SESSION_MS
from tests.chaos.outcome import Outcome

OpenCluster = Callable[[Outcome], AbstractContextManager[Cluster | None]]
ROUNDS_PER_ACT = 25
SHORT = {"kill": 10, "stop": 2, "term": 2, "cut": 3, "whole": 2, "rolling": 1, "reset": 2, "slow": 1, "wipe": 1,
         "client": 3, "zombie": 2}  # fmt: skip
LONG = {
    "kill": 200,
    "stop": 50,
    "cut": 50,
    "rolling": 20,
    "whole": 20,
    "term": 20,
    "client": 30,
    "zombie": 20,
    "reset": 10,
    "slow": 10,
    "wipe": 5,
    "full": 5,
    "clock": 5,
}
SETTINGS = {
    "log.retention.check.interval.ms": "5000",
    "auto.create.topics.enable": "false",
    # a node that says nothing is replaced sooner than by default, so that more rounds see it happen
    "broker.session.timeout.ms": "4000",
    "broker.heartbeat.interval.ms": "500",
    "group.min.session.timeout.ms": "1000",
    "group.initial.rebalance.delay.ms": "100",
    # members of the new protocol take these from the brokers: those of the classic one set theirs (member.py)
    "group.consumer.session.timeout.ms": str(SESSION_MS),
    "group.consumer.min.session.timeout.ms": "1000",
    "group.consumer.heartbeat.interval.ms": str(HEARTBEAT_MS),
    "group.consumer.min.heartbeat.interval.ms": "100",
    "offsets.topic.num.partitions": "8",
    "transaction.state.log.num.partitions": "8",
}


def deal(counts: Mapping[str, int], broker_count: int, random: Random) -> list[Fault]:
    """In an order of chance, but each kind once first: a run that ends early has had a round of as many as it could."""
    kinds = [kind for name, kind in FAULTS.items() if counts.get(name, 0) and kind.brokers_min <= broker_count]
    firsts: list[Fault] = [kind() for kind in kinds]
    others: list[Fault] = [kind() for kind in kinds for _ in range(counts[kind.name] - 1)]
    random.shuffle(firsts)
    random.shuffle(others)
    return firsts + others


@dataclass(slots=True)
class Programme:
    folder: Path
    seed: int
    say: Callable[[str], None]
    broker_count: int = 3
    counts: Mapping[str, int] = field(default_factory=lambda: dict(SHORT))
    seconds: float = float("inf")
    rounds_per_act: int = ROUNDS_PER_ACT
    tally: Path | None = None
    """Where the outcome is kept after each act; what it has already is not played again."""
    has_groups: bool = True
    has_transactions: bool = True
    is_each_played: bool = False
    """One round of each kind, though `seconds` are over: for a run that says something only with all of them."""

    def play(self) -> Outcome:
        outcome = Outcome.resume(self.tally, self.seed) if self.tally else Outcome(self.seed)
        random = Random(self.seed)
        faults = deal(outcome.left_of(self.counts), self.broker_count, random)
        if faults and not outcome.violations:
            folder = self.folder / f"main-{outcome.part_count}"
            with Cluster(folder, self.broker_count, SETTINGS, has_links=self.broker_count > 1) as cluster:
                self._play_acts("main", cluster, random, faults, outcome)
        self._play_special("full", self._small_disk_cluster, DiskFull, random, outcome)
        self._play_special("clock", self._clock_cluster, ClockJump, random, outcome)
        return outcome

    def _play_acts(
        self, name: str, cluster: Cluster, random: Random, faults: Sequence[Fault], outcome: Outcome
    ) -> None:
        acts = [faults[at : at + self.rounds_per_act] for at in range(0, len(faults), self.rounds_per_act)]
        for number, part in enumerate(acts, 1):
            deadline = outcome.started + self.seconds
            if time.monotonic() > deadline or outcome.violations:
                return
            self.say(f"-- {name} {number} of {len(acts)}: {len(part)} rounds on {self.broker_count} brokers")
            clients = {"has_groups": self.has_groups, "has_transactions": self.has_transactions}
            clients["is_chain_new"] = number % 2 == 0
            rounds_min = len({fault.name for fault in part}) if self.is_each_played and number == 1 else 0
            act = Act(
                cluster, random, self.say, f"{name}-{number}", deadline=deadline, rounds_min=rounds_min, **clients
            )
            verdict = act.play(part)
            outcome.add(act.name, verdict)
            self._keep(outcome)
            self.say(f"   {verdict.report}")
            self.say(f"   so far: {outcome.closing_line().removeprefix('-- ')}")
            if verdict.is_ok:
                cluster.delete_topics(act.topics)

    def _keep(self, outcome: Outcome) -> None:
        if self.tally:
            outcome.save(self.tally)

    def _play_special(
        self, name: str, open_cluster: OpenCluster, new_fault: Callable[[], Fault], random: Random, outcome: Outcome
    ) -> None:
        count = outcome.left_of(self.counts).get(name, 0)
        if not count or outcome.violations or time.monotonic() > outcome.started + self.seconds:
            return
        with open_cluster(outcome) as cluster:
            if cluster is not None:
                self._play_acts(name, cluster, random, [new_fault() for _ in range(count)], outcome)

    @contextmanager
    def _small_disk_cluster(self, outcome: Outcome) -> Iterator[Cluster | None]:
        folder = self.folder / f"full-{outcome.part_count}"
        disks = [folder / f"node-{node_id}" / "data" for node_id in range(1, self.broker_count + 1)]
        with small_disks(disks) as are_there:
            if not are_there:
                outcome.left_out.append("disk full: file systems of limited size need root")
                yield None
                return
            with Cluster(folder, self.broker_count, SETTINGS) as cluster:
                yield cluster

    @contextmanager
    def _clock_cluster(self, outcome: Outcome) -> Iterator[Cluster | None]:
        if not FAKETIME_LIBRARY.exists():
            outcome.left_out.append(f"clock jump: {FAKETIME_LIBRARY} is not installed (Debian: faketime)")
            yield None
            return
        folder = self.folder / f"clock-{outcome.part_count}"
        folder.mkdir(parents=True)
        environment = clock_environment(folder, self.broker_count)
        with Cluster(folder, self.broker_count, SETTINGS, environment=environment) as cluster:
            yield cluster
