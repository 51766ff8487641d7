"""A whole run: which faults, how many rounds of each, in acts that share one cluster; the closing lines."""

from __future__ import annotations

import statistics
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

from tests.chaos.act import Act, Verdict
from tests.chaos.cluster import Cluster
from tests.chaos.failover import percentile
from tests.chaos.faults import (
    FAKETIME_LIBRARY,
    FAULTS,
    ClockJump,
    DiskFull,
    Fault,
    clock_environment,
    mount_small_disk,
    unmount,
)

OpenCluster = Callable[["Outcome"], AbstractContextManager[Cluster | None]]
ROUNDS_PER_ACT = 25
SHORT = {"kill": 10, "stop": 2, "term": 2, "cut": 3, "whole": 2, "rolling": 1, "reset": 2, "slow": 1, "wipe": 1}
LONG = {
    "kill": 200,
    "stop": 50,
    "cut": 50,
    "rolling": 20,
    "whole": 20,
    "term": 20,
    "reset": 10,
    "slow": 10,
    "wipe": 5,
    "full": 5,
    "clock": 5,
}
SETTINGS = {"log.retention.check.interval.ms": "5000", "auto.create.topics.enable": "false"}


@dataclass(slots=True)
class Outcome:
    """What all acts together gave."""

    seed: int
    rounds: Counter[str] = field(default_factory=Counter)
    sent: int = 0
    acked: int = 0
    read: int = 0
    lost: int = 0
    duplicated: int = 0
    allowed: Counter[str] = field(default_factory=Counter)
    violations: list[str] = field(default_factory=list)
    gaps_s: dict[str, list[float]] = field(default_factory=dict)
    left_out: list[str] = field(default_factory=list)
    started: float = field(default_factory=time.monotonic)

    def add(self, name: str, verdict: Verdict) -> None:
        report = verdict.report
        self.rounds.update(part.fault for part in verdict.rounds)
        self.sent, self.acked, self.read = self.sent + report.sent, self.acked + report.acked, self.read + report.read
        self.allowed.update(str(anomaly.kind) for anomaly in report.allowed)
        broken = Counter(str(anomaly.kind) for anomaly in report.violations)
        self.lost += broken["lost-write"] + broken["unseen"]
        self.duplicated += broken["duplicate"]
        self.violations += [f"{name}: {text}" for text in (*verdict.problems, *map(str, report.violations))]
        for fault, gaps in verdict.gaps_s.items():
            self.gaps_s.setdefault(fault, []).extend(gaps)

    def closing_lines(self) -> list[str]:
        seconds = time.monotonic() - self.started
        rounds = ", ".join(f"{name} {count}" for name, count in sorted(self.rounds.items()))
        allowed = ", ".join(f"{kind} {count}" for kind, count in sorted(self.allowed.items())) or "none"
        lines = [
            f"-- {self.rounds.total()} rounds in {seconds:.0f} s: {rounds}",
            f"-- sent {self.sent:,}, acked {self.acked:,}, read {self.read:,}; of what was promised: lost {self.lost}, "
            f"duplicated {self.duplicated}, anomalies and other problems {len(self.violations)}",
            f"-- what acks=1 and retries without idempotence do not promise: {allowed}",
            "-- longest time without an acknowledgement, p50 / p95 s: " + ", ".join(self._gap_texts()),
        ]
        return lines + [f"-- left out: {text}" for text in self.left_out]

    def _gap_texts(self) -> Iterator[str]:
        for fault, gaps in sorted(self.gaps_s.items()):
            yield f"{fault} {statistics.median(gaps):.1f} / {percentile(gaps, 0.95):.1f}"


@dataclass(slots=True)
class Programme:
    folder: Path
    seed: int
    say: Callable[[str], None]
    broker_count: int = 3
    counts: Mapping[str, int] = field(default_factory=lambda: dict(SHORT))
    seconds: float = float("inf")
    rounds_per_act: int = ROUNDS_PER_ACT

    def play(self) -> Outcome:
        outcome, random = Outcome(self.seed), Random(self.seed)
        plain = {name: count for name, count in self.counts.items() if name in FAULTS}
        faults: list[Fault] = [FAULTS[name]() for name, count in plain.items() for _ in range(count)]
        faults = [fault for fault in faults if fault.brokers_min <= self.broker_count]
        random.shuffle(faults)
        if faults:
            with Cluster(self.folder / "main", self.broker_count, SETTINGS, has_links=self.broker_count > 1) as cluster:
                self._play_acts("main", cluster, random, faults, outcome)
        self._play_special("full", self._small_disk_cluster, lambda: DiskFull(1), random, outcome)
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
            act = Act(cluster, random, self.say, f"{name}-{number}", deadline=deadline)
            verdict = act.play(part)
            outcome.add(act.name, verdict)
            self.say(f"   {verdict.report}")
            if verdict.is_ok:
                cluster.delete_topics([f"{act.name}-fsync", f"{act.name}-cache"])

    def _play_special(
        self, name: str, open_cluster: OpenCluster, new_fault: Callable[[], Fault], random: Random, outcome: Outcome
    ) -> None:
        count = self.counts.get(name, 0)
        if not count or outcome.violations:
            return
        with open_cluster(outcome) as cluster:
            if cluster is not None:
                self._play_acts(name, cluster, random, [new_fault() for _ in range(count)], outcome)

    @contextmanager
    def _small_disk_cluster(self, outcome: Outcome) -> Iterator[Cluster | None]:
        disk = self.folder / "full" / "node-1" / "data"
        if not mount_small_disk(disk):
            outcome.left_out.append("disk full: a tmpfs of limited size needs root")
            yield None
            return
        try:
            with Cluster(self.folder / "full", self.broker_count, SETTINGS) as cluster:
                yield cluster
        finally:
            unmount(disk)

    @contextmanager
    def _clock_cluster(self, outcome: Outcome) -> Iterator[Cluster | None]:
        if not FAKETIME_LIBRARY.exists():
            outcome.left_out.append(f"clock jump: {FAKETIME_LIBRARY} is not installed (Debian: faketime)")
            yield None
            return
        folder = self.folder / "clock"
        folder.mkdir(parents=True)
        environment = clock_environment(folder, self.broker_count)
        with Cluster(folder, self.broker_count, SETTINGS, environment=environment) as cluster:
            yield cluster
