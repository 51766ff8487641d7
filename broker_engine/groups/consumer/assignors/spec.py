"""What an assignor is told."""

from __future__ import annotations

from dataclasses import dataclass, field
from uuid import UUID

from broker_engine.groups.consumer.partitions import Partitions


@dataclass(frozen=True, slots=True)
class TopicSpec:
    id: UUID
    name: str
    partition_count: int


@dataclass(frozen=True, slots=True)
class MemberSpec:
    topics: frozenset[str]
    """By name. Some may not exist."""
    target: Partitions = field(default_factory=dict)
    """What it was to have before."""
    instance_id: str | None = None
