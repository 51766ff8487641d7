"""Every change of the cluster by an operator: moves of replicas, elections, a broker that leaves. All are audited.

A plan is shown before it is carried out. It is worked out again then, and only begun if it is still the same: moves are
never others than those that the operator has seen.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass

from control_plane.audit.actions import record
from control_plane.cluster.queries import Status, cluster_view, known_sizes
from control_plane.engine.cluster import ClusterEngine, Move, PartitionName
from control_plane.engine.deadline import Deadline
from control_plane.engine.factory import get_engine
from control_plane.refusals import Conflict, Invalid, NotFound

IN_REQUEST_S = 10.0


@dataclass(frozen=True, slots=True)
class Plan:
    moves: list[Move]
    sizes: Mapping[PartitionName, int]

    @property
    def id(self) -> str:
        text = "\n".join(f"{move.partition} {move.before} {move.after}" for move in self.moves)
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    def bytes_of(self, move: Move) -> int:
        """What has to be copied."""
        return len(move.adding) * self.sizes.get(move.partition, 0)

    @property
    def bytes_total(self) -> int:
        return sum(self.bytes_of(move) for move in self.moves)


def plan_moves(*, replication_factor: int | None = None, leaving: frozenset[int] = frozenset()) -> Plan:
    """What would be moved. Nothing changes."""
    engine, deadline = get_engine().cluster, Deadline.after(IN_REQUEST_S)
    _check_brokers(engine, leaving, replication_factor, deadline)
    moves = engine.propose_moves(replication_factor=replication_factor, leaving=leaving, timeout_s=deadline.left_s())
    return Plan(sorted(moves, key=lambda move: move.partition), known_sizes())


def _check_brokers(
    engine: ClusterEngine, leaving: frozenset[int], replication_factor: int | None, deadline: Deadline
) -> None:
    live = engine.live_brokers(timeout_s=deadline.left_s())
    staying = [broker for broker in live if broker not in leaving]
    if not staying:
        raise Invalid("leaving", "at least one live broker must stay")
    if replication_factor is not None and replication_factor > len(staying):
        raise Invalid("replication_factor", f"{len(staying)} live brokers cannot hold {replication_factor} replicas")
    if leaving and replication_factor is None:
        _check_room(engine, len(staying), deadline)
    _check_nobody_is_away(live, leaving)


def _check_room(engine: ClusterEngine, staying_count: int, deadline: Deadline) -> None:
    most = max(map(len, engine.placement(timeout_s=deadline.left_s()).values()), default=0)
    if most > staying_count:
        raise Conflict(
            f"Topics have {most} copies, and {staying_count} brokers would stay: add a broker first, or keep "
            f"{staying_count} copies"
        )


def _check_nobody_is_away(live: list[int], leaving: frozenset[int]) -> None:
    members = [it.member.broker for it in cluster_view().brokers]
    missing = [broker for broker in members if broker not in live and broker not in leaving]
    if missing:
        # A plan over those that are here would copy everything that the others hold, for a restart of a minute.
        names = ", ".join(map(str, missing))
        raise Conflict(f"Not all brokers are live (missing: {names}): bring them back, or drain them")


def begin_moves(
    *,
    actor: str,
    plan_id: str,
    replication_factor: int | None = None,
    leaving: frozenset[int] = frozenset(),
    bytes_per_s_max: int | None = None,
) -> Plan:
    plan = plan_moves(replication_factor=replication_factor, leaving=leaving)
    if plan.id != plan_id:
        raise Conflict("The cluster has changed since this plan was made: look at the new one")
    if plan.moves:
        get_engine().cluster.begin_moves(plan.moves, bytes_per_s_max=bytes_per_s_max, timeout_s=IN_REQUEST_S)
        after = {
            "moves": len(plan.moves),
            "bytes": plan.bytes_total,
            "leaving": sorted(leaving),
            "replication_factor": replication_factor,
            "bytes_per_s_max": bytes_per_s_max,
        }
        record(actor=actor, verb="cluster.moves_begun", target=f"plan {plan.id}", tenant=None, after=after)
    return plan


def cancel_moves(*, actor: str) -> int:
    deadline = Deadline.after(IN_REQUEST_S)
    engine = get_engine().cluster
    count = engine.cancel_moves(timeout_s=deadline.left_s())
    engine.end_throttle(timeout_s=deadline.left_s())
    if count:
        record(actor=actor, verb="cluster.moves_cancelled", target="all moves", tenant=None, before={"moves": count})
    return count


def elect_preferred_leaders(*, actor: str) -> int:
    count = get_engine().cluster.elect_preferred_leaders(timeout_s=IN_REQUEST_S)
    if count:
        record(
            actor=actor, verb="cluster.leaders_elected", target="preferred leaders", tenant=None, after={"moved": count}
        )
    return count


def remove_broker(*, actor: str, broker: int) -> None:
    """Only one that is down and holds nothing: anything else would lose records or come back by itself."""
    engine, deadline = get_engine().cluster, Deadline.after(IN_REQUEST_S)
    view = next((it for it in cluster_view().brokers if it.member.broker == broker), None)
    if view is None:
        raise NotFound(f"There is no broker {broker}")
    held = sum(broker in replicas for replicas in engine.placement(timeout_s=deadline.left_s()).values())
    if held:
        raise Conflict(f"Broker {broker} holds {held} replicas: drain it first")
    if view.status is not Status.DOWN:
        raise Conflict(f"Broker {broker} is {view.status}: stop its process first, or it registers again")
    engine.remove_broker(broker, timeout_s=deadline.left_s())
    record(actor=actor, verb="cluster.broker_removed", target=f"broker {broker}", tenant=None)


def end_throttle_when_done() -> bool:
    """For the periodic task. Whether nothing moves any more."""
    engine, deadline = get_engine().cluster, Deadline.after(IN_REQUEST_S)
    if engine.moves_under_way(timeout_s=deadline.left_s()):
        return False
    engine.end_throttle(timeout_s=deadline.left_s())
    return True
