"""A cluster in memory, as operators see it: replicas that move when told, brokers that leave."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from control_plane.engine.cluster import Move, PartitionName, Replicas
from control_plane.engine.interface import EngineUnavailable


@dataclass
class MemoryCluster:
    is_away: bool = False
    brokers: list[int] = field(default_factory=lambda: [1, 2, 3])
    replicas: dict[PartitionName, Replicas] = field(default_factory=dict)
    moving: dict[PartitionName, Replicas] = field(default_factory=dict)
    """To where."""
    bytes_per_s_max: int | None = None
    misplaced_leader_count: int = 0

    def live_brokers(self, *, timeout_s: float) -> list[int]:
        self._answer()
        return list(self.brokers)

    def placement(self, *, timeout_s: float) -> Mapping[PartitionName, Replicas]:
        self._answer()
        return dict(self.replicas)

    def propose_moves(self, *, replication_factor: int | None, leaving: frozenset[int], timeout_s: float) -> list[Move]:
        self._answer()
        staying = [broker for broker in self.brokers if broker not in leaving]
        moves = []
        for name, before in self.replicas.items():
            kept = [broker for broker in before if broker in staying]
            others = [broker for broker in staying if broker not in kept]
            wanted = replication_factor or len(before)
            after = tuple([*kept, *others][: min(wanted, len(before)) if leaving else max(wanted, len(before))])
            if after != before:
                moves.append(Move(name, before, after))
        return moves

    def begin_moves(self, moves: list[Move], *, bytes_per_s_max: int | None, timeout_s: float) -> None:
        self._answer()
        self.moving |= {move.partition: move.after for move in moves}
        self.bytes_per_s_max = bytes_per_s_max

    def finish_moves(self) -> None:
        self.replicas |= self.moving
        self.moving.clear()

    def moves_under_way(self, *, timeout_s: float) -> list[PartitionName]:
        self._answer()
        return sorted(self.moving)

    def cancel_moves(self, *, timeout_s: float) -> int:
        self._answer()
        count = len(self.moving)
        self.moving.clear()
        return count

    def end_throttle(self, *, timeout_s: float) -> None:
        self._answer()
        self.bytes_per_s_max = None

    def elect_preferred_leaders(self, *, timeout_s: float) -> int:
        self._answer()
        count, self.misplaced_leader_count = self.misplaced_leader_count, 0
        return count

    def remove_broker(self, broker: int, *, timeout_s: float) -> None:
        self._answer()
        self.brokers.remove(broker)

    def _answer(self) -> None:
        if self.is_away:
            raise EngineUnavailable("no broker answers at 127.0.0.1:9094")
