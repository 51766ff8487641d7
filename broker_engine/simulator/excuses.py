"""What a run's settings and faults excuse: acks=1, unclean elections, more copies lost than there had to be."""

from __future__ import annotations

from collections.abc import Sequence

from broker_engine.simulator.history import Allowed, Kind
from broker_engine.simulator.plans import ProducerPlan, TopicPlan
from broker_engine.simulator.schedule import Fault
from broker_engine.simulator.swarm import Swarm

_ZOMBIES = frozenset(
    {"pause", "cut", "cut_one_way", "isolate", "flap", "slow_link", "slow_disk", "stall_disk", "shutdown"}
)
_POWER = frozenset({"power", "power_at_call", "power_all", "sync_error"})


def allowed_by(swarm: Swarm, faults: Sequence[Fault]) -> Allowed:
    losing = [plan.name for plan in swarm.producers if may_lose(plan, swarm, faults)]
    repeating = [plan.name for plan in swarm.producers if not plan.is_idempotent]
    return Allowed(
        may_lose=frozenset(losing),
        may_duplicate=frozenset(repeating),
        kinds=_kinds(faults),
        shaken_topics=losing_topics(swarm, faults),
    )


def _kinds(faults: Sequence[Fault]) -> frozenset[Kind]:
    """A leader that does not know yet that another was elected tells readers the end of a prefix (F5)."""
    return frozenset({Kind.STALE_END}) if any(fault.kind in _ZOMBIES for fault in faults) else frozenset()


def losing_topics(swarm: Swarm, faults: Sequence[Fault]) -> frozenset[str]:
    """Of which acknowledged records may be lost, whoever sent them."""
    return frozenset(topic.name for topic in swarm.topics if _may_lose_acked(topic, swarm, faults))


def may_lose(plan: ProducerPlan, swarm: Swarm, faults: Sequence[Fault]) -> bool:
    return plan.acks != -1 or _may_lose_acked(plan.topic, swarm, faults)


def _may_lose_acked(topic: TopicPlan, swarm: Swarm, faults: Sequence[Fault]) -> bool:
    """More copies are gone than min.insync.replicas promises to outlive, or a loss was asked for."""
    if topic.is_unclean_allowed or any(fault.kind == "elect_unclean" for fault in faults):
        return True
    return _lost_copy_count(topic, swarm, faults) >= topic.min_insync


def _lost_copy_count(topic: TopicPlan, swarm: Swarm, faults: Sequence[Fault]) -> int:
    """Of brokers: a controller's disk holds none."""
    lost = {fault.node for fault in faults if fault.kind in ("wipe", "rot")}
    if not topic.is_fsync:
        for fault in faults:
            if fault.kind in _POWER:
                lost |= set(swarm.node_ids) if fault.kind == "power_all" else {fault.node}
    return len(lost.intersection(swarm.broker_ids))
