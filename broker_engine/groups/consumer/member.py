"""One member of a group of the consumer protocol: what it asks for (its subscription) and where it stands (its epoch
and partitions). Both are values, as the log holds them; only when it was last heard is memory's own.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import IntEnum

from broker_engine.groups.consumer.partitions import Assigned, Partitions

JOINING_EPOCH = 0
LEAVING_EPOCH = -1
AWAY_EPOCH = -2
"""A static member that left and will be back."""


class MemberState(IntEnum):
    """Kafka's numbers, as they stand in records."""

    STABLE = 0
    UNREVOKED_PARTITIONS = 1
    """It has been told to give up partitions, and has not reported them gone."""
    UNRELEASED_PARTITIONS = 2
    """Some of what it is to have is still with somebody else."""
    UNKNOWN = 127


@dataclass(frozen=True, slots=True)
class ClassicFacts:
    """Of a member that speaks the classic protocol inside a group of the new one."""

    session_timeout_ms: int
    protocols: tuple[tuple[str, bytes], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Subscription:
    instance_id: str | None = None
    rack_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    topic_names: frozenset[str] = frozenset()
    """Physical texts."""
    topic_regex: str | None = None
    rebalance_timeout_ms: int = -1
    server_assignor: str | None = None
    classic: ClassicFacts | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    epoch: int = 0
    previous_epoch: int = 0
    state: MemberState = MemberState.STABLE
    assigned: Assigned = field(default_factory=dict)
    """What it may use."""
    revoking: Assigned = field(default_factory=dict)
    """What it is to give up and still holds."""


@dataclass(slots=True, kw_only=True)
class ConsumerMember:
    id: str
    subscription: Subscription = field(default_factory=Subscription)
    standing: Standing = field(default_factory=Standing)
    seen_ms: int = 0
    deadline_ms: int | None = None
    """By when it must have given up partitions; of a classic member, by when it must have joined again or synced."""

    @property
    def epoch(self) -> int:
        return self.standing.epoch

    @property
    def instance_id(self) -> str | None:
        return self.subscription.instance_id

    @property
    def is_classic(self) -> bool:
        return self.subscription.classic is not None

    def is_reconciled(self, target_epoch: int) -> bool:
        return self.standing.state is MemberState.STABLE and self.standing.epoch == target_epoch


@dataclass(frozen=True, slots=True, kw_only=True)
class HeartbeatAsk:
    """None and -1 mean: as before."""

    member_id: str
    epoch: int
    instance_id: str | None = None
    rack_id: str | None = None
    rebalance_timeout_ms: int = -1
    topic_names: frozenset[str] | None = None
    topic_regex: str | None = None
    server_assignor: str | None = None
    owned: Partitions | None = None
    client_id: str = ""
    client_host: str = ""

    @property
    def is_full(self) -> bool:
        """A member that lost touch says everything, and is to be told everything."""
        has_topics = self.topic_names is not None or self.topic_regex is not None
        has_all = has_topics and self.rebalance_timeout_ms != -1 and self.owned is not None
        return self.epoch == JOINING_EPOCH or has_all


@dataclass(frozen=True, slots=True)
class HeartbeatAnswer:
    member_id: str
    epoch: int
    assignment: Partitions | None = None
    """None: as before."""
    interval_ms: int = 0
    """Until its next heartbeat is wanted; none of who leaves."""
