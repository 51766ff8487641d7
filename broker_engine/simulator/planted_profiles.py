"""Swarms in which a certain planted bug has its situation often: the same clusters and faults, others weighed more.

A bug that the common swarm finds once in thousands of seeds is found here in a few, and for the right reason: nothing
is done in a profile that the common swarm does not do too.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping

from broker_engine.simulator.coordination_plan import GROUPS_RATIO, Coordination, draw_coordination
from broker_engine.simulator.plans import TopicPlan
from broker_engine.simulator.swarm import FAULT_WEIGHTS, Swarm

_PATIENCE = {
    "controller.quorum.election.timeout.ms": "300",
    "controller.quorum.fetch.timeout.ms": "500",
    "controller.quorum.election.backoff.max.ms": "200",
}


def contested_elections(swarm: Swarm) -> Swarm:
    """Controllers that come and go, of five: several stand for election at once, and voters lose their power."""
    kinds = ("power", "power_at_call", "kill", "pause", "isolate", "cut", "cut_one_way")
    return _changed(_with_nodes(swarm, 5), kinds, settings=_PATIENCE, faults_per_s=3.0, chaos_s=12.0)


def lost_power(swarm: Swarm) -> Swarm:
    """One node, whose power goes again and again, and logs with an index entry for each batch."""
    topics = tuple(_indexed(topic) for topic in _with_nodes(swarm, 1).topics)
    kinds = ("power", "power_at_call", "kill_at_call")
    return _changed(_with_nodes(swarm, 1), kinds, topics=topics, faults_per_s=1.2, chaos_s=12.0, lasting_s_max=0.3)


def single_copies(swarm: Swarm) -> Swarm:
    """Topics of one replica on three nodes that are restarted: what a node loses, nobody else has."""
    three = _with_nodes(swarm, 3)
    topics = tuple(_fitting(topic, 1) for topic in three.topics)
    producers = tuple(dataclasses.replace(plan, topic=_fitting(plan.topic, 1)) for plan in three.producers)
    return _changed(three, ("kill", "shutdown"), topics=topics, producers=producers, faults_per_s=1.0, chaos_s=8.0)


def rotten_copies(swarm: Swarm) -> Swarm:
    """Copies rot before a recovery point has passed them; everybody is killed at once, and comes back one by one."""
    three = _with_nodes(swarm, 3)
    topics = tuple(_in_two_of_three(topic) for topic in three.topics)
    producers = tuple(
        dataclasses.replace(plan, topic=_in_two_of_three(plan.topic), acks=-1, pause_s=0.1) for plan in three.producers
    )
    return _changed(
        three,
        ("rot", "kill_all"),
        settings={"log.flush.offset.checkpoint.interval.ms": "60000", "leader.imbalance.check.interval.seconds": "2"},
        topics=topics,
        producers=producers,
        faults_per_s=1.2,
        chaos_s=8.0,
        disk_delays_s=(0.0002, 0.004, 0.02),
    )


def jumping_clocks(swarm: Swarm) -> Swarm:
    """Nothing happens but that clocks jump."""
    return _changed(_with_nodes(swarm, 3), ("clock",), faults_per_s=1.0, chaos_s=8.0)


def asked_for_ends(swarm: Swarm) -> Swarm:
    """Leaders change without anybody being cut off, followers are slow, and readers ask for the end all the time."""
    delays = tuple(0.02 for _ in swarm.node_ids)
    return _changed(
        swarm,
        ("elect", "kill"),
        settings={"leader.imbalance.check.interval.seconds": "2", "replica.lag.time.max.ms": "10000"},
        faults_per_s=2.0,
        chaos_s=12.0,
        latency_s=0.003,
        disk_delays_s=delays,
        ends_every_s=0.01,
    )


def with_groups(swarm: Swarm) -> Swarm:
    """Coordinators come and go, and members of classic groups too."""
    return _grouped(swarm, is_assigned_by_broker=False)


def with_slow_loading(swarm: Swarm) -> Swarm:
    """The same on slow disks: a new coordinator takes a while to read what its predecessor wrote."""
    swarm = with_groups(swarm)
    return dataclasses.replace(swarm, disk_delays_s=tuple(0.02 for _ in swarm.node_ids), faults_per_s=2.0)


def with_consumer_groups(swarm: Swarm) -> Swarm:
    """As with_groups, with members of KIP-848."""
    return _grouped(swarm, is_assigned_by_broker=True)


def with_bank(swarm: Swarm) -> Swarm:
    """As with_groups, with money, and workers who let the coordinator wait."""
    swarm = _moving(swarm, kind=GROUPS_RATIO, chaos_s=10.0)
    bank = swarm.coordination.bank
    assert bank is not None
    dawdling = dataclasses.replace(bank, dawdle_ratio=0.15, transaction_timeout_ms=1_500)
    return dataclasses.replace(swarm, coordination=dataclasses.replace(swarm.coordination, bank=dawdling))


def with_late_ends(swarm: Swarm) -> Swarm:
    """As with_bank, with workers who hesitate before they commit, are often stopped, and soon have a successor."""
    swarm = dataclasses.replace(_moving(swarm, kind=GROUPS_RATIO, chaos_s=15.0), fault_weights={"elect": 1.0})
    assert swarm.coordination.bank is not None
    bank = dataclasses.replace(
        swarm.coordination.bank,
        hesitation_ratio=0.5,
        dawdle_ratio=0.0,
        transaction_timeout_ms=4_000,
        session_timeout_ms=1_000,
        life_s=2.0,
    )
    return dataclasses.replace(swarm, coordination=dataclasses.replace(swarm.coordination, bank=bank))


PROFILES: tuple[Callable[[Swarm], Swarm], ...] = (
    asked_for_ends,
    contested_elections,
    jumping_clocks,
    lost_power,
    rotten_copies,
    single_copies,
    with_bank,
    with_consumer_groups,
    with_groups,
    with_late_ends,
    with_slow_loading,
)


def _grouped(swarm: Swarm, *, is_assigned_by_broker: bool) -> Swarm:
    swarm = _moving(swarm, kind=0.0, chaos_s=15.0)
    coordination = swarm.coordination
    groups = [dataclasses.replace(plan, is_assigned_by_broker=is_assigned_by_broker) for plan in coordination.groups]
    return dataclasses.replace(swarm, coordination=dataclasses.replace(coordination, groups=tuple(groups)))


def _moving(swarm: Swarm, *, kind: float, chaos_s: float) -> Swarm:
    swarm = _with_nodes(swarm, 3)
    coordination = draw_coordination(swarm.seed, swarm.node_count, swarm.topics, kind=kind)
    kinds = ("kill", "kill_at_call", "pause", "cut", "isolate", "elect", "slow_disk", "stall_disk")
    swarm = dataclasses.replace(
        swarm, coordination=coordination, producers=swarm.producers[:1], consumer_count=1, lasting_s_max=1.0
    )
    return _changed(swarm, kinds, settings=coordination.settings, faults_per_s=1.0, chaos_s=chaos_s)


def _changed(
    swarm: Swarm, kinds: tuple[str, ...], *, settings: Mapping[str, str] | None = None, **fields: object
) -> Swarm:
    weights = {kind: FAULT_WEIGHTS[kind] for kind in kinds}
    changed = {**swarm.settings, **(settings or {})}
    return dataclasses.replace(swarm, settings=changed, fault_weights=weights, **fields)  # type: ignore[arg-type]


def _with_nodes(swarm: Swarm, count: int) -> Swarm:
    topics = tuple(_fitting(topic, count) for topic in swarm.topics)
    producers = tuple(
        dataclasses.replace(plan, topic=next(topic for topic in topics if topic.name == plan.topic.name))
        for plan in swarm.producers
    )
    delays = (swarm.disk_delays_s * count)[:count]
    return dataclasses.replace(
        swarm,
        node_count=count,
        topics=topics,
        producers=producers,
        disk_delays_s=delays,
        controller_count=0,
        coordination=Coordination(),  # it was drawn for another number of nodes
    )


def _fitting(topic: TopicPlan, node_count: int) -> TopicPlan:
    factor = min(topic.replication_factor, node_count)
    min_insync = min(topic.min_insync, factor)
    configs = {**topic.configs, "min.insync.replicas": str(min_insync)}
    return dataclasses.replace(topic, replication_factor=factor, min_insync=min_insync, configs=configs)


def _indexed(topic: TopicPlan) -> TopicPlan:
    configs = {**topic.configs, "index.interval.bytes": "0", "segment.ms": "700", "ack.durability": "fsync"}
    return dataclasses.replace(topic, is_fsync=True, configs=configs)


def _in_two_of_three(topic: TopicPlan) -> TopicPlan:
    """On their disks, before it is acknowledged; in short segments, for what rots is sealed."""
    configs = {
        **topic.configs,
        "ack.durability": "fsync",
        "min.insync.replicas": "2",
        "unclean.leader.election.enable": "false",
        "segment.ms": "700",
    }
    return dataclasses.replace(
        topic, replication_factor=3, min_insync=2, is_fsync=True, is_unclean_allowed=False, configs=configs
    )
