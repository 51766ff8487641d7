"""What a seed makes of a run: how many nodes, which settings, topics and clients, how fast disks and network are.

Limits are drawn small on purpose: a cluster with tiny time-outs, segments and answers reaches corners that a
comfortable one reaches once a year. Most runs are short, with as many faults as longer ones would have: what breaks
breaks by a few faults close together, and of short runs there are twice as many in an hour. Some are long.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from random import Random

from broker_engine.simulator import compaction_plan
from broker_engine.simulator.compaction_plan import draw_compacted
from broker_engine.simulator.coordination_plan import Coordination, draw_coordination
from broker_engine.simulator.node import CLIENT_PORT, CONTROLLER_PORT, host_of
from broker_engine.simulator.plans import ProducerPlan, TopicPlan

__all__ = ["FAULT_WEIGHTS", "ProducerPlan", "Swarm", "TopicPlan", "draw"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Swarm:
    seed: int
    node_count: int
    settings: Mapping[str, str]
    topics: tuple[TopicPlan, ...]
    producers: tuple[ProducerPlan, ...]
    consumer_count: int
    latency_s: float
    split_ratio: float
    disk_delays_s: tuple[float, ...]
    chaos_s: float
    fault_weights: Mapping[str, float] = field(default_factory=dict)
    """By kind; a kind that is missing does not happen in this run."""
    faults_per_s: float = 0.5
    lasting_s_max: float = 12.0
    ends_every_s: float = 1.3
    """Readers ask for the end of a log so often."""
    coordination: Coordination = field(default_factory=Coordination)
    clock_drift: float = 0.0
    """So much faster or slower than time itself the clocks of nodes go, at most."""
    controller_count: int = 0
    """Nodes beside the brokers that only vote and lead the metadata. 0: every node is both."""

    @property
    def broker_ids(self) -> tuple[int, ...]:
        return tuple(range(1, self.node_count + 1))

    @property
    def node_ids(self) -> tuple[int, ...]:
        """All of them; those that are controllers only come last."""
        return tuple(range(1, self.node_count + self.controller_count + 1))

    def settings_of(self, node_id: int) -> dict[str, str]:
        given = {**self.settings, "listeners": f"{host_of(node_id)}:{CLIENT_PORT}"}
        if len(self.node_ids) > 1:
            named = [f"{number}@{host_of(number)}:{CONTROLLER_PORT}" for number in self.node_ids]
            given["controller.quorum.voters"] = ",".join(named)
        if self.controller_count:
            given["process.roles"] = "broker" if node_id in self.broker_ids else "controller"
        return given

    def disk_delay_s_of(self, node_id: int) -> float:
        return self.disk_delays_s[(node_id - 1) % len(self.disk_delays_s)]

    def clock_rate_of(self, node_id: int) -> float:
        if not self.clock_drift:
            return 1.0
        return 1.0 + self.clock_drift * Random(f"{self.seed}/{node_id}/clock").uniform(-1.0, 1.0)  # noqa: S311


FAULT_WEIGHTS = {
    "kill": 3.0,
    "kill_at_call": 2.0,
    "power": 2.0,
    "power_at_call": 1.5,
    "power_all": 0.5,
    "kill_all": 0.5,
    "shutdown": 1.0,
    "rolling": 0.4,
    "pause": 2.0,
    "cut": 2.0,
    "cut_one_way": 2.0,
    "isolate": 2.0,
    "flap": 1.0,
    "reset": 2.0,
    "slow_link": 1.0,
    "slow_disk": 1.0,
    "stall_disk": 0.7,
    "sync_error": 0.5,
    "full_disk": 0.5,
    "clock": 1.0,
    "wipe": 0.4,
    "rot": 1.0,
    "elect": 0.7,
    "elect_unclean": 0.5,
    "reassign": 1.0,
    "churn": 1.0,
}
_AMONG_SEVERAL = frozenset(
    {
        "power_all", "kill_all", "rolling", "cut", "cut_one_way", "isolate", "flap", "slow_link", "wipe", "rot",
        "elect", "elect_unclean", "reassign",
    }
)  # fmt: skip


_STORM_FAULTS = (
    "kill", "kill_at_call", "power", "pause", "cut", "cut_one_way", "isolate", "slow_link", "stall_disk", "shutdown",
    "reset", "elect",
)  # fmt: skip
_STORM_RATIO = 0.5
_CHAOS_S = {5.0: 30, 8.0: 30, 12.0: 20, 20.0: 14, 35.0: 6}
_STORM_S = {5.0: 45, 8.0: 35, 15.0: 20}
"""How long the faults go on, and of a hundred runs how many do so that long."""
_DRIFT_RATIO = 0.3
_DRIFTS = (0.02, 0.1)
_SPLIT_RATIO = 0.05
_SPLIT_NODE_COUNT = 3
"""Brokers, and as many controllers: of the runs that have so many nodes few, for they take half as long again."""


def draw(seed: int, *, node_count: int | None = None, chaos_s_min: float = 0.0) -> Swarm:
    """With `chaos_s_min` the faults of short runs go on that long, and begin as they do without it."""
    swarm = _with_compaction(_draw_all(seed, node_count))
    return replace(swarm, chaos_s=max(swarm.chaos_s, chaos_s_min))


def _with_compaction(swarm: Swarm) -> Swarm:
    topics, producers = draw_compacted(swarm.seed, swarm.topics, swarm.producers)
    further = compaction_plan.SETTINGS if any(topic.is_compacted for topic in topics) else {}
    return replace(swarm, topics=topics, producers=producers, settings={**swarm.settings, **further})


def _draw_all(seed: int, node_count: int | None) -> Swarm:
    swarm = _draw(seed, node_count)
    swarm = replace(swarm, clock_drift=_clock_drift(seed), controller_count=_controller_count(seed, swarm.node_count))
    coordination = draw_coordination(seed, swarm.node_count, swarm.topics)
    if not coordination.is_there:
        return swarm
    return replace(
        swarm,
        coordination=coordination,
        settings={**swarm.settings, **coordination.settings},
        producers=swarm.producers[:1],
        consumer_count=1,
        chaos_s=max(swarm.chaos_s, coordination.chaos_s),
    )


def _draw(seed: int, node_count: int | None) -> Swarm:
    random = Random(f"{seed}/swarm")  # noqa: S311 - a plan, nothing secret
    count = node_count or random.choices([1, 3, 5], [12, 78, 10])[0]
    topics = tuple(_topic(random, f"t{number}", count) for number in range(random.choice([1, 1, 2])))
    settings = _settings(random)
    if count > 1 and random.random() < _STORM_RATIO:
        return _storm(random, seed, count, settings)
    return Swarm(
        seed=seed,
        node_count=count,
        settings=settings,
        topics=topics,
        producers=_producers(random, topics),
        consumer_count=random.choice([1, 1, 2]),
        latency_s=random.choice([0.0001, 0.0003, 0.001, 0.003]),
        split_ratio=random.choice([0.0, 0.02, 0.2]),
        disk_delays_s=tuple(random.choice([0.0002, 0.001, 0.004]) for _ in range(count)),
        chaos_s=_weighted(random, _CHAOS_S),
        fault_weights=_fault_weights(random, count),
        faults_per_s=random.choice([0.3, 0.6, 1.2, 2.0]),
    )


def _clock_drift(seed: int) -> float:
    """Apart from the rest, as what follows: what a seed draws otherwise stays as it was."""
    random = Random(f"{seed}/clocks")  # noqa: S311 - a plan, nothing secret
    return random.choice(_DRIFTS) if random.random() < _DRIFT_RATIO else 0.0


def _controller_count(seed: int, node_count: int) -> int:
    random = Random(f"{seed}/roles")  # noqa: S311 - a plan, nothing secret
    is_split = node_count == _SPLIT_NODE_COUNT and random.random() < _SPLIT_RATIO
    return _SPLIT_NODE_COUNT if is_split else 0


def _weighted(random: Random, weights: Mapping[float, int]) -> float:
    return random.choices(list(weights), list(weights.values()))[0]


def _storm(random: Random, seed: int, node_count: int, settings: dict[str, str]) -> Swarm:
    """Three copies, small answers, short patience, and one short fault after the other: replicas fall behind, catch up
    and change roles all the time.
    """
    topic = _topic(random, "t0", node_count, factor=3)
    settings["replica.fetch.max.bytes"] = "300"
    settings["replica.lag.time.max.ms"] = str(random.choice([400, 800, 2_000]))
    settings["broker.session.timeout.ms"] = str(random.choice([900, 2_000]))
    settings["broker.heartbeat.interval.ms"] = "300"
    kinds = random.sample(_STORM_FAULTS, k=random.randint(3, len(_STORM_FAULTS)))
    return Swarm(
        seed=seed,
        node_count=node_count,
        settings=settings,
        topics=(topic,),
        producers=_producers(random, (topic,)),
        consumer_count=1,
        latency_s=random.choice([0.0003, 0.003]),
        split_ratio=0.02,
        disk_delays_s=tuple(random.choice([0.0002, 0.001, 0.004, 0.02]) for _ in range(node_count)),
        chaos_s=_weighted(random, _STORM_S),
        fault_weights={kind: FAULT_WEIGHTS[kind] for kind in kinds},
        faults_per_s=random.choice([1.5, 3.0]),
        lasting_s_max=2.0,
    )


def _fault_weights(random: Random, node_count: int) -> dict[str, float]:
    """Each run has some kinds only: mixtures of everything hide what few of them do together."""
    possible = [kind for kind in FAULT_WEIGHTS if node_count > 1 or kind not in _AMONG_SEVERAL]
    share = random.choice([0.2, 0.4, 0.7])
    chosen = [kind for kind in possible if random.random() < share] or ["kill"]
    return {kind: FAULT_WEIGHTS[kind] for kind in chosen}


def _settings(random: Random) -> dict[str, str]:
    session_ms = random.choice([1_500, 3_000, 6_000])
    values: dict[str, int | str] = {
        "auto.create.topics.enable": "false",
        "telemetry.interval.ms": 60_000,
        "telemetry.snapshot.interval.ms": 3_600_000,
        "log.dir.free.bytes.min": 4096,
        "log.flush.offset.checkpoint.interval.ms": random.choice([500, 3_000, 60_000]),
        "log.retention.check.interval.ms": random.choice([1_000, 300_000]),
        "replica.high.watermark.checkpoint.interval.ms": random.choice([300, 5_000]),
        "controller.quorum.election.timeout.ms": random.choice([300, 1_000]),
        "controller.quorum.fetch.timeout.ms": random.choice([500, 2_000, 2_000]),
        "controller.quorum.election.backoff.max.ms": random.choice([200, 1_000]),
        "broker.heartbeat.interval.ms": session_ms // random.choice([3, 5]),
        "broker.session.timeout.ms": session_ms,
        "replica.lag.time.max.ms": random.choice([800, 2_000, 10_000]),
        "replica.fetch.wait.max.ms": random.choice([100, 500, 500]),
        "replica.fetch.backoff.ms": random.choice([50, 1_000]),
        "replica.fetch.max.bytes": random.choice([300, 5_000, 1 << 20]),
        "num.replica.fetchers": random.choice([1, 1, 2]),
        "metadata.log.max.record.bytes.between.snapshots": random.choice([500, 5_000, 20 << 20]),
        "leader.imbalance.check.interval.seconds": random.choice([2, 300]),
        "max.incremental.fetch.session.cache.slots": random.choice([4, 1_000]),
        "log.flush.syncfs": random.choice(["auto", "never"]),
    }
    return {name: str(value) for name, value in values.items()}


def _topic(random: Random, name: str, node_count: int, *, factor: int | None = None) -> TopicPlan:
    if factor is None:
        factor = 1 if node_count == 1 else random.choice([1, 2, 3, 3, 3, 3])
    min_insync = random.choice({1: [1], 2: [1, 2], 3: [1, 2, 2, 2]}[factor])
    is_fsync = random.random() < 0.6
    is_unclean_allowed = factor > 1 and random.random() < 0.15
    configs = {
        "ack.durability": "fsync" if is_fsync else "page-cache",
        "min.insync.replicas": str(min_insync),
        "unclean.leader.election.enable": "true" if is_unclean_allowed else "false",
        "segment.ms": str(random.choice([700, 5_000, 604_800_000])),
        "index.interval.bytes": str(random.choice([0, 200, 4_096])),
    }
    return TopicPlan(
        name=name,
        partition_count=random.choice([1, 1, 2, 3]),
        replication_factor=factor,
        min_insync=min_insync,
        is_fsync=is_fsync,
        is_unclean_allowed=is_unclean_allowed,
        configs=configs,
    )


def _producers(random: Random, topics: tuple[TopicPlan, ...]) -> tuple[ProducerPlan, ...]:
    plans = []
    for number in range(random.choice([1, 2, 2, 3])):
        acks = random.choice([-1, -1, -1, 1])
        plans.append(
            ProducerPlan(
                name=f"p{number}",
                topic=topics[number % len(topics)],
                acks=acks,
                is_idempotent=acks == -1 and random.random() < 0.8,
                pause_s=random.choice([0.1, 0.3, 0.8]),
                linger_ms=random.choice([0, 5]),
                burst_max=random.choice([1, 1, 4]),
            )
        )
    return tuple(plans)
