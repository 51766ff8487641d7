"""What a seed adds to some runs: groups whose members come and go, and a bank that moves money in transactions.

Drawn apart from everything else, so that a seed's cluster and faults are the same with and without them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from random import Random

from broker_engine.simulator.plans import TopicPlan

GROUPS_RATIO = 0.10
BANK_RATIO = 0.12
_BOTH_RATIO = 0.2
_ASSIGNED_BY_BROKER_RATIO = 0.5
_VERSION_2_RATIO = 0.5
_HESITATION_RATIOS = (0.0, 0.0, 0.05)


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupPlan:
    name: str
    topic: str
    partition_count: int
    member_count: int
    session_timeout_ms: int
    heartbeat_interval_ms: int
    life_s: float
    """How long a member lives, about."""
    is_assigned_by_broker: bool
    """By KIP-848; else classic, where members do it among themselves."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BankPlan:
    transfers: TopicPlan
    ledger: TopicPlan
    worker_count: int
    transaction_timeout_ms: int
    session_timeout_ms: int
    life_s: float
    abort_ratio: float
    dawdle_ratio: float
    """Of transactions in which the worker sleeps until the coordinator gives up waiting."""
    hesitation_ratio: float
    """Of transactions in which it sleeps when everything is sent: its end comes late, maybe after a successor's."""
    batch_max: int
    is_version_2: bool
    """The cluster has transaction.version 2 from the start: workers begin each transaction in an epoch of its own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Coordination:
    groups: tuple[GroupPlan, ...] = ()
    bank: BankPlan | None = None
    settings: Mapping[str, str] = field(default_factory=dict)
    chaos_s: float = 0.0
    """At least so long: sessions and time-outs have to end in it."""

    @property
    def is_there(self) -> bool:
        return bool(self.groups) or self.bank is not None

    @property
    def topics(self) -> tuple[TopicPlan, ...]:
        return () if self.bank is None else (self.bank.transfers, self.bank.ledger)

    @property
    def features(self) -> dict[str, int]:
        """Finalized before clients come."""
        return {"transaction.version": 2} if self.bank is not None and self.bank.is_version_2 else {}


def draw_coordination(
    seed: int, node_count: int, topics: Sequence[TopicPlan], *, kind: float | None = None
) -> Coordination:
    """Nothing for most seeds. `kind` in place of what the seed draws: below GROUPS_RATIO groups, then a bank."""
    random = Random(f"{seed}/coordination")  # noqa: S311 - a plan, nothing secret
    drawn = random.random()
    kind = drawn if kind is None else kind
    bank = _bank(random, seed, node_count) if GROUPS_RATIO <= kind < GROUPS_RATIO + BANK_RATIO else None
    has_groups = kind < GROUPS_RATIO or (bank is not None and random.random() < _BOTH_RATIO)
    groups = (_group(random, seed, topics[0]),) if has_groups else ()
    settings = _settings(random, has_bank=bank is not None)
    for group in groups:
        settings |= _broker_side(group)
    return Coordination(groups=groups, bank=bank, settings=settings, chaos_s=random.choice([6.0, 6.0, 12.0]))


def _settings(random: Random, *, has_bank: bool) -> dict[str, str]:
    """Few partitions, so that one coordinator has much; short waits, so that a run sees many of them."""
    settings = {
        "offsets.topic.num.partitions": str(random.choice([1, 2, 3])),
        "group.initial.rebalance.delay.ms": str(random.choice([0, 300])),
        "group.min.session.timeout.ms": "100",
    }
    if has_bank:
        settings["transaction.state.log.num.partitions"] = str(random.choice([1, 2, 3]))
        settings["transaction.abort.timed.out.transaction.cleanup.interval.ms"] = str(random.choice([200, 1_000]))
    return settings


def _broker_side(group: GroupPlan) -> dict[str, str]:
    """What members of a KIP-848 group leave to the broker."""
    return {
        "group.consumer.min.session.timeout.ms": "100",
        "group.consumer.session.timeout.ms": str(group.session_timeout_ms),
        "group.consumer.min.heartbeat.interval.ms": "10",
        "group.consumer.heartbeat.interval.ms": str(group.heartbeat_interval_ms),
        "group.consumer.assignment.interval.ms": str(group.heartbeat_interval_ms),
    }


def _group(random: Random, seed: int, topic: TopicPlan) -> GroupPlan:
    session_ms = random.choice([1_000, 3_000])
    return GroupPlan(
        name="g",
        topic=topic.name,
        partition_count=topic.partition_count,
        member_count=random.choice([1, 2, 3]),
        session_timeout_ms=session_ms,
        heartbeat_interval_ms=session_ms // 4,
        life_s=random.choice([2.0, 5.0]),
        is_assigned_by_broker=Random(f"{seed}/group protocol").random() < _ASSIGNED_BY_BROKER_RATIO,  # noqa: S311
    )


def _bank(random: Random, seed: int, node_count: int) -> BankPlan:
    return BankPlan(
        transfers=_topic("transfers", node_count, random.choice([1, 2])),
        ledger=_topic("ledger", node_count, random.choice([2, 3])),
        worker_count=random.choice([1, 2]),
        transaction_timeout_ms=random.choice([1_500, 4_000]),
        session_timeout_ms=random.choice([1_000, 3_000]),
        life_s=random.choice([3.0, 8.0]),
        abort_ratio=random.choice([0.05, 0.3]),
        dawdle_ratio=random.choice([0.0, 0.05]),
        hesitation_ratio=Random(f"{seed}/hesitation").choice(_HESITATION_RATIOS),  # noqa: S311
        batch_max=random.choice([1, 4]),
        is_version_2=Random(f"{seed}/transaction version").random() < _VERSION_2_RATIO,  # noqa: S311
    )


def _topic(name: str, node_count: int, partition_count: int) -> TopicPlan:
    """As safe as can be: what the bank loses, coordinators have lost."""
    factor = min(3, node_count)
    min_insync = 2 if factor == 3 else 1
    configs = {"ack.durability": "fsync", "min.insync.replicas": str(min_insync)}
    return TopicPlan(
        name=name,
        partition_count=partition_count,
        replication_factor=factor,
        min_insync=min_insync,
        is_fsync=True,
        is_unclean_allowed=False,
        configs=configs,
    )
