"""What operators ask of an engine's cluster. The same rules as for the rest of the seam (`interface.py`)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True, order=True)
class PartitionName:
    tenant: str  # empty: root, the engine's own
    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.tenant}/{self.topic}-{self.partition}" if self.tenant else f"{self.topic}-{self.partition}"


Replicas = tuple[int, ...]
"""Broker numbers, the preferred leader first."""


@dataclass(frozen=True, slots=True)
class Move:
    partition: PartitionName
    before: Replicas
    after: Replicas

    @property
    def adding(self) -> Replicas:
        return tuple(broker for broker in self.after if broker not in self.before)


class ClusterEngine(Protocol):
    def live_brokers(self, *, timeout_s: float) -> list[int]: ...

    def placement(self, *, timeout_s: float) -> Mapping[PartitionName, Replicas]:
        """Every partition that may be moved: not those that belong to one broker by their nature."""

    def propose_moves(self, *, replication_factor: int | None, leaving: frozenset[int], timeout_s: float) -> list[Move]:
        """What would even out the load over all live brokers but the leaving ones, each topic keeping its number of
        copies. With a `replication_factor` topics that have fewer get as many; where brokers leave, topics that have
        more keep as many."""

    def begin_moves(self, moves: list[Move], *, bytes_per_s_max: int | None, timeout_s: float) -> None:
        """Raises EngineRefused with the first refusal. None: without a throttle."""

    def moves_under_way(self, *, timeout_s: float) -> list[PartitionName]: ...

    def cancel_moves(self, *, timeout_s: float) -> int:
        """How many were under way."""

    def end_throttle(self, *, timeout_s: float) -> None:
        """For when all moves are done. Does nothing where nothing is throttled."""

    def elect_preferred_leaders(self, *, timeout_s: float) -> int:
        """How many partitions changed their leader."""

    def remove_broker(self, broker: int, *, timeout_s: float) -> None:
        """Out of the quorum and out of the list of brokers."""
