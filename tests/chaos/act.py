"""An act: fresh topics, clients at work, some rounds of faults, then final polls and the verdict of the checker."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from random import Random

from broker_engine.simulator.history import EndOffset, History, Kind, Report, check
from broker_engine.simulator.history.rows import Partition
from tests.chaos.cluster import Cluster
from tests.chaos.faults import Fault, Scene
from tests.chaos.load import Load, LoadPlan, ProducerPlan, add_polls, end_offset, open_consumer
from tests.chaos.replicas import differing_replicas

FINAL_POLL_TIMEOUT_S = 60.0
FINAL_READER = "final"
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

    def play(self, faults: Sequence[Fault]) -> Verdict:
        partitions = self._create_topics()
        plan = LoadPlan(self.cluster.bootstrap, partitions, self.producers)
        verdict = Verdict(Report())
        with Load(plan, self.cluster.folder) as load:
            self._wait_for_answers(load, ANSWERS_PER_ROUND)
            scene = Scene(self.cluster, self.random, partitions)
            try:
                self._play_rounds(scene, load, faults, verdict)
                self.cluster.wait_until_whole(scene.topics)
            except AssertionError as error:
                verdict.problems.append(str(error))
            history, errors = load.finish()
        verdict.problems += errors
        if not verdict.problems:
            self._read_all(history, partitions, verdict)
            verdict.problems += differing_replicas(self.cluster, partitions)
        history.save(self.cluster.folder / f"{self.name}.jsonl")
        stale = [Kind.STALE_END] if any(fault.may_answer_stale for fault in faults) else []
        verdict.report = check(history, plan.allowed(*stale))
        verdict.gaps_s = _gaps(history, verdict.rounds)
        return verdict

    def _create_topics(self) -> tuple[Partition, ...]:
        fsync = self.cluster.create_topic(f"{self.name}-fsync", self.partition_count)
        cache = self.cluster.create_topic(f"{self.name}-cache", self.partition_count, ack_durability="page-cache")
        return fsync + cache

    def _wait_for_answers(self, load: Load, count: int) -> None:
        deadline = time.monotonic() + ANSWER_TIMEOUT_S
        while load.acked < count:
            assert time.monotonic() < deadline, f"clients have too few answers after {ANSWER_TIMEOUT_S:.0f} s"
            time.sleep(0.05)

    def _play_rounds(self, scene: Scene, load: Load, faults: Sequence[Fault], verdict: Verdict) -> None:
        for number, fault in enumerate(faults, 1):
            if time.monotonic() > self.deadline:
                return
            begin, acked = time.monotonic(), load.acked
            text = fault.play(scene)
            is_patient = self.random.random() < PATIENCE
            whole_s = self.cluster.wait_until_whole(scene.topics) if is_patient else None
            if is_patient:
                self._wait_for_answers(load, load.acked + ANSWERS_PER_ROUND)
            scene.wait(0.0, 0.3)
            verdict.rounds.append(Round(fault.name, text, begin, time.monotonic(), whole_s))
            healed = "" if whole_s is None else f", whole {whole_s:.1f} s later"
            self.say(f"   {number:>3}/{len(faults)} {text}{healed}; acked {load.acked:,} (+{load.acked - acked})")

    def _read_all(self, history: History, partitions: Sequence[Partition], verdict: Verdict) -> None:
        """Every partition from its beginning to its end, by a reader of its own."""
        consumer = open_consumer(self.cluster.bootstrap, partitions)
        history.ok(FINAL_READER, "assign", time=time.monotonic())
        ends = self._ends(history, partitions)
        wanted, seen = {part: end for part, end in ends.items() if end}, dict.fromkeys(partitions, 0)
        deadline = time.monotonic() + FINAL_POLL_TIMEOUT_S
        while any(seen[part] < end for part, end in wanted.items()):
            if time.monotonic() > deadline:
                missing = [f"{part} {seen[part]} of {end}" for part, end in wanted.items() if seen[part] < end]
                verdict.problems.append(f"the final reader did not get to the end: {missing}")
                break
            messages = consumer.consume(1_000, timeout=0.5)
            add_polls(history, FINAL_READER, messages)
            for message in messages:
                if message.error() is None:
                    seen[message.topic(), message.partition()] = message.offset() + 1
        consumer.close()

    def _ends(self, history: History, partitions: Sequence[Partition]) -> dict[Partition, int]:
        consumer = open_consumer(self.cluster.bootstrap, partitions)
        ends = {}
        for partition in partitions:
            history.invoke(FINAL_READER, "list_offsets", [EndOffset(partition)], time=time.monotonic())
            ends[partition] = end_offset(consumer, partition)
            op = EndOffset(partition, ends[partition])
            history.ok(FINAL_READER, "list_offsets", [op], time=time.monotonic())
        consumer.close()
        return ends


def _gaps(history: History, rounds: Sequence[Round]) -> dict[str, list[float]]:
    times = [row.time for row in history.rows if row.type == "ok" and row.f == "send" and row.process == "sure"]
    gaps: dict[str, list[float]] = {}
    for part in rounds:
        inside = [part.begin, *(time for time in times if part.begin <= time <= part.end)]
        steps = [after - before for before, after in pairwise(inside)]
        gaps.setdefault(part.fault, []).append(max(steps, default=part.end - part.begin))
    return gaps
