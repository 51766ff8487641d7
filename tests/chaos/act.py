"""An act: fresh topics, clients at work, some rounds of faults, then final polls and the verdict of the checker.

Beside producers and readers by assignment (`load.py`) there is a crew of processes that are killed too: members of
groups of both protocols, and transformers that carry what the sure producers sent into another topic, exactly once.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from random import Random

from broker_engine.simulator.history import History, Kind, Report, check
from broker_engine.simulator.history.rows import Partition, Row
from tests.chaos import group_check
from tests.chaos.cluster import Cluster
from tests.chaos.crew import Crew
from tests.chaos.faults import Fault, Scene
from tests.chaos.final_reader import read_all, read_values, values_of
from tests.chaos.journal import Entry
from tests.chaos.load import Load, LoadPlan, ProducerPlan
from tests.chaos.member import NEW_PROTOCOL
from tests.chaos.replicas import differing_replicas

ANSWERS_PER_ROUND = 100
ANSWER_TIMEOUT_S = 60.0
PATIENCE = 0.7
"""In how many of ten rounds the next fault waits until every replica is in sync again."""
PRODUCERS = (
    ProducerPlan("sure", records_per_s=250),
    ProducerPlan("sure-large", records_per_s=40, record_bytes=5_000),
    ProducerPlan("retrying", is_idempotent=False, records_per_s=100),
    ProducerPlan("leader-only", acks="1", is_idempotent=False, records_per_s=100),
)
SURE = ("sure", "sure-large")
KEPT = (*SURE, "retrying")
READERS, NEW_READERS, CHAIN = "readers", "new-readers", "chain"
"""The groups: a classic one, one of the new protocol, and one that writes too."""
MEMBER_COUNT = 2
OUTPUT = "-out"
STATIC: dict[str, object] = {"group.instance.id": "static", "session.timeout.ms": 30_000}
"""Longer than what brokers are away for: librdkafka whose session is over speaks for its instance without its id, is
fenced by itself (also by Apache Kafka), and takes that for fatal."""


def carry_over(partition: Partition, _: int, value: str) -> list[tuple[Partition, str]]:
    """What the chain does to a record; those of producers without promises are left where they are."""
    topic, number = partition
    is_sure = value.partition(":")[0] in SURE
    return [((topic.rpartition("-")[0] + OUTPUT, number), value)] if is_sure else []


@dataclass(frozen=True, slots=True)
class Round:
    fault: str
    text: str
    begin: float
    end: float
    whole_s: float | None
    """Until every replica was in sync again; None where nobody waited for it."""


@dataclass(slots=True)
class Verdict:
    report: Report
    rounds: list[Round] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    """What is wrong beside the history: not whole again in time, replicas that differ, a node that ended."""
    gaps_s: dict[str, list[float]] = field(default_factory=dict)
    """By fault, of each round: the longest time without an acknowledgement to the sure producer."""
    figures: Counter[str] = field(default_factory=Counter)
    """What groups and transactions did."""

    @property
    def is_ok(self) -> bool:
        return self.report.is_ok and not self.problems


@dataclass(slots=True)
class Act:
    cluster: Cluster
    random: Random
    say: Callable[[str], None]
    name: str = "act"
    partition_count: int = 4
    producers: tuple[ProducerPlan, ...] = PRODUCERS
    deadline: float = float("inf")
    """No new round begins after this time."""
    rounds_min: int = 0
    """So many are played whatever the time."""
    has_groups: bool = True
    has_transactions: bool = True
    is_chain_new: bool = False
    """The chain's group is of the new protocol."""

    @property
    def topics(self) -> list[str]:
        names = ["fsync", "cache", *(["out"] if self.has_transactions else [])]
        return [f"{self.name}-{name}" for name in names]

    @property
    def _outputs(self) -> list[Partition]:
        """Of the chain."""
        return [(topic, number) for topic in self.topics[2:] for number in range(self.partition_count)]

    def play(self, faults: Sequence[Fault]) -> Verdict:
        partitions = self._create_topics()
        plan = LoadPlan(self.cluster.bootstrap, partitions, self.producers, results=tuple(self._outputs))
        verdict = Verdict(Report())
        with Load(plan, self.cluster.folder) as load, self._new_crew() as crew:
            self._wait_for_answers(load, ANSWERS_PER_ROUND)
            scene = Scene(self.cluster, self.random, partitions, crew)
            is_whole = True
            try:
                self._play_rounds(scene, load, faults, verdict)
                self.cluster.wait_until_whole(self.topics)
            except AssertionError as error:
                is_whole = False
                verdict.problems.append(str(error))
            history, errors = load.finish()
            verdict.problems += errors
            if not verdict.problems:
                verdict.problems += crew.finish(self._read_by(partitions))
            verdict.problems += scene.problems
        entries = {group: crew.entries(group) for group in self._read_by(partitions)}
        for group, part in entries.items():
            history.extend(entry for entry in part if isinstance(entry, Row))
            verdict.figures += group_check.transaction_counts(part)
            if group != self._group(CHAIN):
                whose = "by the new protocol" if group == self._group(NEW_READERS) else "by the classic protocol"
                verdict.figures += group_check.commit_counts(part, whose)
        if is_whole:  # what can be read is read, also where a client went wrong: else it would count as lost
            self._read_and_compare(history, partitions, entries, verdict)
        history.save(self.cluster.folder / f"{self.name}.jsonl")
        stale = [Kind.STALE_END] if any(fault.may_answer_stale for fault in faults) else []
        verdict.report = check(history, plan.allowed(*stale))
        verdict.gaps_s = _gaps(history, verdict.rounds)
        return verdict

    def _create_topics(self) -> tuple[Partition, ...]:
        """Those that producers write to; the chain's output stands beside them."""
        fsync = self.cluster.create_topic(f"{self.name}-fsync", self.partition_count)
        cache = self.cluster.create_topic(f"{self.name}-cache", self.partition_count, ack_durability="page-cache")
        if self.has_transactions:
            self.cluster.create_topic(f"{self.name}{OUTPUT}", self.partition_count)
        return fsync + cache

    def _new_crew(self) -> Crew:
        folder = self.cluster.folder / f"{self.name}-crew"
        folder.mkdir()
        crew = Crew(self.cluster.bootstrap, folder)
        fsync, cache = [f"{self.name}-fsync"], [f"{self.name}-cache"]
        for number in range(MEMBER_COUNT if self.has_groups else 0):
            crew.add_member(f"member-{number}", self._group(READERS), cache, **_identity(number))
            crew.add_member(f"new-member-{number}", self._group(NEW_READERS), cache, **NEW_PROTOCOL)
        for number in range(MEMBER_COUNT if self.has_transactions else 0):
            settings = NEW_PROTOCOL if self.is_chain_new else _identity(number)
            crew.add_transformer(f"transformer-{number}", self._group(CHAIN), fsync, carry_over, **settings)
        return crew

    def _group(self, name: str) -> str:
        return f"{self.name}-{name}"

    def _read_by(self, partitions: Sequence[Partition]) -> dict[str, list[Partition]]:
        """Which group has to read what."""
        names = {READERS: "cache", NEW_READERS: "cache"} if self.has_groups else {}
        names |= {CHAIN: "fsync"} if self.has_transactions else {}
        return {
            self._group(group): [part for part in partitions if part[0] == f"{self.name}-{topic}"]
            for group, topic in names.items()
        }

    def _read_and_compare(
        self, history: History, partitions: Sequence[Partition], entries: Mapping[str, list[Entry]], verdict: Verdict
    ) -> None:
        everything = [*partitions, *self._outputs]
        verdict.problems += read_all(self.cluster.bootstrap, everything, history)
        verdict.problems += differing_replicas(self.cluster, everything)
        for group in (READERS, NEW_READERS) if self.has_groups else ():
            members = entries[self._group(group)]
            promised = values_of(history, "ok", KEPT, f"{self.name}-cache")
            problems = [*group_check.offsets_that_went_back(members), *group_check.never_polled(promised, members)]
            verdict.problems += [f"{group}: {text}" for text in problems]
        if self.has_transactions:
            verdict.problems += self._compare_output(history)

    def _compare_output(self, history: History) -> list[str]:
        source = f"{self.name}-fsync"
        promised = dict.fromkeys(values_of(history, "ok", SURE, source), 1)
        possible = values_of(history, "invoke", SURE, source)
        read = read_values(history, self._outputs)
        return group_check.not_exactly_once(promised, read.elements(), possible=possible)

    def _wait_for_answers(self, load: Load, count: int) -> None:
        deadline = time.monotonic() + ANSWER_TIMEOUT_S
        while load.acked < count:
            assert time.monotonic() < deadline, f"clients have too few answers after {ANSWER_TIMEOUT_S:.0f} s"
            time.sleep(0.05)

    def _play_rounds(self, scene: Scene, load: Load, faults: Sequence[Fault], verdict: Verdict) -> None:
        for number, fault in enumerate(faults, 1):
            if number > self.rounds_min and time.monotonic() > self.deadline:
                return
            begin, acked = time.monotonic(), load.acked
            text = fault.play(scene)
            scene.crew.revive()
            is_patient = self.random.random() < PATIENCE
            whole_s = self.cluster.wait_until_whole(self.topics) if is_patient else None
            if is_patient:
                self._wait_for_answers(load, load.acked + ANSWERS_PER_ROUND)
            scene.wait(0.0, 0.3)
            verdict.rounds.append(Round(fault.name, text, begin, time.monotonic(), whole_s))
            healed = "" if whole_s is None else f", whole {whole_s:.1f} s later"
            self.say(f"   {number:>3}/{len(faults)} {text}{healed}; acked {load.acked:,} (+{load.acked - acked})")


def _identity(number: int) -> dict[str, object]:
    """The first of each sort is a static member, that comes back without a rebalance; the others' sessions time out.

    Not by the new protocol: there librdkafka takes it for fatal that the one that was killed still has the name.
    """
    return {} if number else STATIC


def _gaps(history: History, rounds: Sequence[Round]) -> dict[str, list[float]]:
    times = [row.time for row in history.rows if row.type == "ok" and row.f == "send" and row.process == "sure"]
    gaps: dict[str, list[float]] = {}
    for part in rounds:
        inside = [part.begin, *(time for time in times if part.begin <= time <= part.end)]
        steps = [after - before for before, after in pairwise(inside)]
        gaps.setdefault(part.fault, []).append(max(steps, default=part.end - part.begin))
    return gaps
