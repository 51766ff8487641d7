"""The power goes, on every machine at once: what is only in a page cache is gone (mission.md 2.9, D17).

In the simulator, on its disks: a killed process loses no page cache, so no kill can show this.
"""

from __future__ import annotations

from broker_engine.simulator.history import Allowed, History, check
from broker_engine.simulator.run import Run
from broker_engine.simulator.schedule import Fault
from broker_engine.simulator.swarm import ProducerPlan, Swarm, TopicPlan
from tests.guarantees.lab import EVERYTHING
from tests.guarantees.story import Counts, Expected, Story

SEEDS = range(1, 9)
CHAOS_S = 12.0
SETTINGS = {"auto.create.topics.enable": "false", "log.dir.free.bytes.min": "4096", "replica.fetch.wait.max.ms": "500"}


def power_goes(durability: str) -> Story:
    def simulate() -> Counts:
        """The same life with several seeds: what survives on a disk that was not told to sync is chance."""
        counts = [_life(seed, durability) for seed in SEEDS]
        return Counts(*(sum(getattr(part, name) for part in counts) for name in Counts.__slots__))

    is_fsync = durability == "fsync"
    return Story(
        key=f"power-{durability}",
        items="D17, 2.9",
        event="power lost on all three machines at once (simulated disks, 8 seeds)",
        setting=f"acks=all with idempotence, ack.durability={durability}",
        promise="on the disks of all in-sync replicas" if is_fsync else "in their memory, as Kafka does it",
        expected=Expected.KEEPS if is_fsync else Expected.LOSES,
        simulate=simulate,
    )


def _life(seed: int, durability: str) -> Counts:
    run = Run(_swarm(seed, durability), [Fault(at_s=8.0, kind="power_all", node=1, for_s=1.0)])
    report = run.go()
    unexpected = [violation for violation in report.violations if violation.rule.startswith("41")]
    assert not unexpected, unexpected
    return Counts.of(check(_as_found_afterwards(run.clients.history), Allowed(kinds=EVERYTHING)))


def _as_found_afterwards(history: History) -> History:
    """What somebody read before the power went is no proof that it is still there."""
    rows = [row for row in history.rows if row.f != "poll" or row.process == "final"]
    assert any(row.f == "poll" for row in rows), "nothing was read afterwards"
    return History(rows)


def _swarm(seed: int, durability: str) -> Swarm:
    configs = {"ack.durability": durability, "min.insync.replicas": "2"}
    topic = TopicPlan(
        name="orders",
        partition_count=2,
        replication_factor=3,
        min_insync=2,
        is_fsync=durability == "fsync",
        is_unclean_allowed=False,
        configs=configs,
    )
    producer = ProducerPlan(
        name="sender", topic=topic, acks=-1, is_idempotent=True, pause_s=0.05, linger_ms=0, burst_max=2
    )
    return Swarm(
        seed=seed,
        node_count=3,
        settings=SETTINGS,
        topics=(topic,),
        producers=(producer,),
        consumer_count=1,
        latency_s=0.0003,
        split_ratio=0.0,
        disk_delays_s=(0.001, 0.001, 0.001),
        chaos_s=CHAOS_S,
    )


STORIES = (power_goes("fsync"), power_goes("page-cache"))
