"""One run: a cluster drawn from a seed, chaos, healing, and everything that must hold, held against what happened."""

from __future__ import annotations

import asyncio
import gc
import itertools
import logging
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import lru_cache

from broker_engine.security import accounts, scram
from broker_engine.simulator.advance_oracle import AdvanceOracle
from broker_engine.simulator.clients import DELIVERY_TIMEOUT_MS, SimClients
from broker_engine.simulator.cluster import SimCluster
from broker_engine.simulator.coordination import Coordinated
from broker_engine.simulator.engine_log import EngineLog
from broker_engine.simulator.excuses import allowed_by, losing_topics
from broker_engine.simulator.history import check
from broker_engine.simulator.operator import Operator
from broker_engine.simulator.oracles import Oracles
from broker_engine.simulator.schedule import Fault, draw_faults
from broker_engine.simulator.settled import Settling
from broker_engine.simulator.sim_loop import DeadlineReached, NothingLeft, SimLoop
from broker_engine.simulator.swarm import Swarm, draw

FORM_WITHIN_S = 40.0
WARM_UP_S = 1.0
SETTLE_WITHIN_S = 60.0
"""After the healing: every partition has a leader and all replicas in sync."""
COORDINATE_WITHIN_S = 40.0
"""Then: sessions of the dead are over, groups stand, the bank has entered what was left to enter."""
STABLE_WITHIN_S = 25.0
"""When all clients have ended: time-outs have ended what they left open."""
ANSWER_WITHIN_S = 2 * DELIVERY_TIMEOUT_MS / 1000 + 10
_FINAL_READ_WITHIN_S = 60.0
RUN_WITHIN_S = 300.0
"""And the chaos."""
_LONG_POLL_S = 0.5
_PATIENCE = 0.8
"""Of the long poll: shorter ones are no longer than a slow disk and a slow network together."""


@dataclass(frozen=True, slots=True)
class Violation:
    rule: str
    text: str

    def __str__(self) -> str:
        return f"{self.rule}: {self.text}"


@dataclass(slots=True)
class RunReport:
    seed: int
    violations: list[Violation] = field(default_factory=list)
    event_count: int = 0
    trace_hash: int = 0
    virtual_s: float = 0.0
    acked_count: int = 0
    read_count: int = 0
    fault_count: int = 0
    cpu_s: float = 0.0
    """Of the processor, whatever else ran beside it."""
    lines: list[str] = field(default_factory=list)

    @property
    def is_ok(self) -> bool:
        return not self.violations


class Run:
    def __init__(self, swarm: Swarm, faults: Sequence[Fault], *, is_traced: bool = False) -> None:
        self.swarm = swarm
        self.faults = faults
        self.loop = SimLoop(swarm.seed)
        self.cluster = SimCluster(self.loop, swarm)
        self.clients = SimClients(self.cluster)
        self.oracles = Oracles(self.cluster, losing_topics(swarm, faults))
        self.settling = Settling(self.cluster, losing_topics(swarm, faults))
        self.operator = Operator(self.clients, swarm, swarm.coordination.topics, swarm.coordination.features)
        self.coordinated = Coordinated(self.clients, swarm.coordination, self.oracles.violate)
        self.cluster.admin = self.operator.do
        self.log = EngineLog(self.loop, self.cluster.lines, is_everything_kept=is_traced)
        self.report = RunReport(swarm.seed, lines=self.cluster.lines, fault_count=len(faults))

    def go(self) -> RunReport:
        """To the end, or to the first violation of what is checked all the time."""
        logging.disable(logging.NOTSET)
        try:
            with self.log, remembered_passwords(), AdvanceOracle(self.oracles.violate).watching():
                self._go()
        finally:
            self.loop.end()
        return self.report

    def _go(self) -> None:
        self.loop.on_events = self.oracles.on_events
        story = self.loop.spawn(self.loop.world, self._story(), "story")
        try:
            self.loop.run_until(story, deadline_s=RUN_WITHIN_S + self.swarm.chaos_s)
        except (DeadlineReached, NothingLeft) as error:
            self._violate("41 liveness", str(error))
        report = self.report
        report.event_count, report.trace_hash = self.loop.event_count, self.loop.trace_hash
        report.virtual_s = self.loop.now_s
        for rule, text in (*self.oracles.found, *self.log.unexpected):
            self._violate(rule, text)
        for text in self.loop.unexpected:
            self._violate("no unexpected error", text)

    def _violate(self, rule: str, text: str) -> None:
        self.report.violations.append(Violation(rule, text))

    async def _story(self) -> None:
        self.cluster.start()
        if not await self._wait(self.settling.is_formed, FORM_WITHIN_S, "the cluster did not form"):
            return
        self.operator.start()
        if not await self._wait(self._are_topics_there, FORM_WITHIN_S, "the topics were not made"):
            return
        self.cluster.is_formed = True
        tasks = [self.clients.start_producer(plan) for plan in self.swarm.producers]
        tasks += [self.clients.start_consumer(f"c{n}", self.swarm.topics) for n in range(self.swarm.consumer_count)]
        tasks += self.coordinated.start()
        await asyncio.sleep(WARM_UP_S)
        await self._chaos()
        self.cluster.heal()
        self.coordinated.on_healed()
        self.operator.save_what_can_be_saved(self.settling.lost_partitions)
        if not await self._settle():
            return
        await self._wait(self._is_everything_led, SETTLE_WITHIN_S, "the operator could not choose a leader")
        await asyncio.sleep(0.5)
        await self._wait(self.coordinated.is_settled, COORDINATE_WITHIN_S, "groups and the bank did not settle")
        self.clients.is_stopping = True
        if await self._all_done(tasks) and self.report.is_ok:
            await self._wait(self.settling.is_stable, STABLE_WITHIN_S, "37 transactions are left open")
            await self._wait(self.settling.is_mended, SETTLE_WITHIN_S, "rot is not mended")
            if not self._is_beyond_help():
                await self._finish()

    async def _settle(self) -> bool:
        """False also where it cannot be: then nothing more is asked of the run."""
        missing = await self._until(self.settling.is_settled, SETTLE_WITHIN_S)
        if missing is None:
            return True
        if not self._is_beyond_help():
            self._violate("41 liveness", f"the cluster did not settle within {SETTLE_WITHIN_S:.0f} s: {missing}")
        return False

    def _is_beyond_help(self) -> bool:
        """The only copy of something rotted: nobody can read it, or follow it."""
        lost = self.settling.is_beyond_help()
        if lost is not None:
            self.cluster.note(f"more copies are gone than were promised to outlive: {lost}")
        return lost is not None

    async def _chaos(self) -> None:
        began_s = self.loop.now_s
        for fault in self.faults:
            await asyncio.sleep(max(0.0, began_s + fault.at_s - self.loop.now_s))
            self.cluster.inject(fault)
        await asyncio.sleep(max(0.0, began_s + self.swarm.chaos_s - self.loop.now_s))

    def _are_topics_there(self) -> str | None:
        return None if self.operator.has_topics.is_set() else "no answer"

    def _is_everything_led(self) -> str | None:
        lost = self.settling.lost_partitions()
        return f"nobody leads {lost}" if lost else None

    async def _wait(self, is_so: Callable[[], str | None], within_s: float, otherwise: str) -> bool:
        """`is_so` answers what is missing."""
        missing = await self._until(is_so, within_s)
        if missing is not None:
            self._violate("41 liveness", f"{otherwise} within {within_s:.0f} s: {missing}")
        return missing is None

    async def _until(self, is_so: Callable[[], str | None], within_s: float) -> str | None:
        """What is missing still."""
        deadline_s = self.loop.now_s + within_s
        while (missing := is_so()) is not None:
            if self.loop.now_s > deadline_s:
                break
            await asyncio.sleep(0.1)
        return missing

    async def _all_done(self, tasks: list[asyncio.Task[None]]) -> bool:
        _, pending = await asyncio.wait(tasks, timeout=ANSWER_WITHIN_S)
        if pending or self.clients.unanswered:
            names = sorted(task.get_name() for task in pending)
            unanswered = sorted(self.clients.unanswered)[:5]
            self._violate("41 liveness", f"without an answer: {names}, values {unanswered}")
        return not pending

    async def _probe(self) -> None:
        """No acknowledged record waits for the time-out of a long poll (contracts.md section 8)."""
        wait_s = int(self.swarm.settings["replica.fetch.wait.max.ms"]) / 1000
        known, epochs = self.settling.led_topics(self.swarm.topics), self.settling.leader_epochs()
        probing = self.loop.spawn(self.loop.new_process("probe"), self.clients.probe(known), "probe")
        await asyncio.wait([probing], timeout=ANSWER_WITHIN_S)
        if not probing.done() or probing.exception() is not None:
            why = "no answer" if not probing.done() else repr(probing.exception())
            self._violate("41 liveness", f"records are not acknowledged though nothing is wrong: {why}")
            return
        now_epochs = self.settling.leader_epochs()
        for target, slowest_s in probing.result().items():
            if now_epochs[target] != epochs[target]:
                continue  # leaders were balanced meanwhile: who sent to the former one had to look for the next
            if wait_s >= _LONG_POLL_S and slowest_s > wait_s * _PATIENCE:
                self._violate("no ack waits for a long poll", f"{target}: {slowest_s * 1000:.0f} ms")

    async def _finish(self) -> None:
        await self._probe()
        process = self.loop.new_process("final")
        reading = self.loop.spawn(process, self._read_all(), "final")
        _, pending = await asyncio.wait([reading], timeout=_FINAL_READ_WITHIN_S)
        if pending or reading.exception() is not None:
            why = "no answer" if pending else repr(reading.exception())
            self._violate("41 liveness", f"the logs cannot be read to their ends: {why}")
            return
        allowed = allowed_by(self.swarm, self.faults)
        history = check(self.clients.history, allowed)
        self.report.acked_count, self.report.read_count = history.acked, history.read
        for anomaly in history.violations:
            self._violate(anomaly.kind.value, str(anomaly))
        if not allowed.may_lose:
            for text in self.clients.out_of_range:
                self._violate("out of range", text)
        self.coordinated.check()
        self.oracles.partitions.check_at_end(self.oracles.running_brokers())

    async def _read_all(self) -> None:
        await self.clients.read_all(self.swarm.topics)
        await self.coordinated.read_all()


@contextmanager
def remembered_passwords() -> Iterator[None]:
    """Making a password slow is for attackers: nodes show each other the same secret again and again."""
    original = scram.make_verifier
    scram.make_verifier = accounts.make_verifier = lru_cache(maxsize=64)(original)  # type: ignore[attr-defined]
    try:
        yield
    finally:
        scram.make_verifier = accounts.make_verifier = original  # type: ignore[attr-defined]


_COLLECT_EVERY = 20
_runs = itertools.count()


@contextmanager
def _garbage_kept() -> Iterator[None]:
    """To the end: when garbage is found must not change what happens. Then only what the run has made is gone through.

    Tasks of killed processes are among it: that they were never finished is the point.
    """
    if next(_runs) % _COLLECT_EVERY == 0:
        gc.collect()  # what outlived its own run, by a name or two, and would be frozen ever after
    gc.disable()
    gc.freeze()
    try:
        yield
    finally:
        level = logging.root.manager.disable
        logging.disable(logging.CRITICAL)  # thrown away, a task of theirs may say that its disk is gone
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)
            gc.collect()
        logging.disable(level)
        gc.unfreeze()
        gc.enable()


def play(swarm: Swarm, faults: Sequence[Fault], *, is_traced: bool = False) -> RunReport:
    with _garbage_kept():
        return Run(swarm, faults, is_traced=is_traced).go()


def run_seed(
    seed: int,
    *,
    faults: Sequence[Fault] | None = None,
    node_count: int | None = None,
    chaos_s_min: float = 0.0,
    is_traced: bool = False,
) -> RunReport:
    swarm = draw(seed, node_count=node_count, chaos_s_min=chaos_s_min)
    return play(swarm, draw_faults(swarm) if faults is None else faults, is_traced=is_traced)
