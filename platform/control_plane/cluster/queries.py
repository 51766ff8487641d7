"""The cluster as its brokers tell of it: who is up, what is in trouble, what is moving. Reads the live snapshot."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from control_plane.engine.cluster import PartitionName
from control_plane.engine.interface import EngineUnavailable
from control_plane.live.service import live
from control_plane.live.snapshot import Snapshot
from control_plane.live.states import BrokerState, ClusterState, MemberState, PartitionState

SILENT_AFTER_S = 5.0
"""A broker tells of itself every second."""
GONE_AFTER_S = 2.5
"""Of one that the controller has fenced: that it is silent too leaves little doubt."""
TELEMETRY = ("", "__telemetry")
"""Each of its partitions is on one broker alone: without a leader it says what that broker's own line says."""
STALE_AFTER_S = 100.0
"""Every row comes again within 30 s: an older one is of a topic that is gone."""


class Status(StrEnum):
    UP = "up"
    DRAINING = "draining"
    FENCED = "fenced"
    DOWN = "down"


class Trouble(StrEnum):
    LEADERLESS = "leaderless"
    UNDER_MIN_ISR = "under_min_isr"
    UNDER_REPLICATED = "under_replicated"


@dataclass(frozen=True, slots=True)
class BrokerView:
    member: MemberState
    status: Status
    told: BrokerState | None
    """None: it has not been heard of since this process started."""
    silent_for_s: float | None


@dataclass(frozen=True, slots=True)
class PartitionInView:
    name: PartitionName
    state: PartitionState


@dataclass(frozen=True, slots=True)
class ClusterView:
    cluster: ClusterState
    brokers: list[BrokerView]
    partition_count: int
    troubled: list[tuple[Trouble, PartitionInView]]
    moving: list[PartitionInView]


def cluster_view() -> ClusterView:
    """Raises EngineUnavailable while no broker has spoken for the cluster."""
    return view_of(live.snapshot)


def view_of(snapshot: Snapshot) -> ClusterView:
    cluster = snapshot.cluster()
    if cluster is None:
        raise EngineUnavailable("no broker has told of the cluster yet")
    now_s = snapshot.now_s
    rows = [
        PartitionInView(PartitionName(tenant, topic, state.partition), state)
        for (tenant, topic), state in snapshot.partitions_where(lambda row: now_s - row.heard_s < STALE_AFTER_S)
        if (tenant, topic) != TELEMETRY
    ]
    found = [(trouble_of(row.state), row) for row in rows]
    troubled = sorted(((it, row) for it, row in found if it is not None), key=lambda pair: ORDER.index(pair[0]))
    moving = [row for row in rows if row.state.is_moving]
    return ClusterView(cluster, _brokers(cluster, snapshot, now_s), len(rows), troubled, moving)


ORDER = list(Trouble)


def trouble_of(state: PartitionState) -> Trouble | None:
    """The worst of them."""
    if state.is_leaderless:
        return Trouble.LEADERLESS
    if state.is_under_min_isr:
        return Trouble.UNDER_MIN_ISR
    return Trouble.UNDER_REPLICATED if state.is_under_replicated else None


def _brokers(cluster: ClusterState, snapshot: Snapshot, now_s: float) -> list[BrokerView]:
    told = {state.broker: state for state in snapshot.brokers()}
    return [_broker(member, told.get(member.broker), now_s) for member in cluster.brokers]


def _broker(member: MemberState, told: BrokerState | None, now_s: float) -> BrokerView:
    silent_for_s = None if told is None else now_s - told.heard_s
    return BrokerView(member, status_of(member, silent_for_s), told, silent_for_s)


def status_of(member: MemberState, silent_for_s: float | None) -> Status:
    """Silence counts more than the controller's word: that may be gone itself."""
    if silent_for_s is None or silent_for_s > (GONE_AFTER_S if member.is_fenced else SILENT_AFTER_S):
        return Status.DOWN
    if member.is_fenced:
        return Status.FENCED
    return Status.DRAINING if member.is_shutting_down else Status.UP


def known_sizes() -> Mapping[PartitionName, int]:
    """Bytes of one replica of each partition, where telemetry knows them."""
    rows = live.snapshot.partitions_where(lambda row: row.size_bytes >= 0)
    return {PartitionName(tenant, topic, row.partition): row.size_bytes for (tenant, topic), row in rows}
