"""What groups are told by the broker's configuration, and by a group's own configs."""

from __future__ import annotations

from dataclasses import dataclass, field

_INT_MAX = (1 << 31) - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerSettings:
    """Of one group of the consumer protocol: a group's own configs may differ from the broker's."""

    session_timeout_ms: int = 45_000
    heartbeat_interval_ms: int = 5_000
    assignment_interval_ms: int = 1_000
    size_max: int = _INT_MAX
    assignors: tuple[str, ...] = ("uniform", "range")
    """The first is the one where nobody asks for another."""
    can_upgrade: bool = True
    can_downgrade: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupSettings:
    initial_rebalance_delay_ms: int = 3_000
    size_max: int = _INT_MAX
    consumer: ConsumerSettings = field(default_factory=ConsumerSettings)
