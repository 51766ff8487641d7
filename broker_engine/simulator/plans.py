"""What a run's topics and producers are like."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicPlan:
    name: str
    partition_count: int
    replication_factor: int
    min_insync: int
    is_fsync: bool
    is_unclean_allowed: bool
    configs: Mapping[str, str]

    @property
    def is_compacted(self) -> bool:
        return self.configs.get("cleanup.policy") == "compact"

    def key_of(self, value: int) -> bytes | None:
        """Of its own for each value where there must be one."""
        return b"%d" % value if self.is_compacted else None


@dataclass(frozen=True, slots=True, kw_only=True)
class ProducerPlan:
    name: str
    topic: TopicPlan
    acks: int
    is_idempotent: bool
    pause_s: float
    """Between two sends, about."""
    linger_ms: int
    burst_max: int
