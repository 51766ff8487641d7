"""What one row of telemetry says, typed and frozen. The fields are those of the engine's `telemetry/schema.py`.

Fields that an older broker does not write have defaults, those that a newer one adds are skipped: brokers are upgraded
one by one, under the reader.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

NOBODY = -1
UNKNOWN = -1

Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class ReplicaState:
    broker: int
    log_end_offset: int


@dataclass(frozen=True, slots=True)
class PartitionState:
    partition: int
    at_ms: int
    heard_s: float
    """When this process read it, on the monotonic clock: brokers' clocks may differ."""
    topic_id: str
    leader: int
    leader_epoch: int
    isr: tuple[int, ...]
    replicas: tuple[ReplicaState, ...]
    log_start_offset: int
    high_watermark: int
    last_stable_offset: int
    log_end_offset: int
    size_bytes: int
    last_append_ms: int
    partition_epoch: int = UNKNOWN
    elr: tuple[int, ...] = ()
    adding: tuple[int, ...] = ()
    removing: tuple[int, ...] = ()
    min_insync: int = 1
    unclean_election_count: int = 0

    @property
    def osr(self) -> tuple[int, ...]:
        return tuple(replica.broker for replica in self.replicas if replica.broker not in self.isr)

    @property
    def is_leaderless(self) -> bool:
        return self.leader == NOBODY

    @property
    def is_under_replicated(self) -> bool:
        """Replicas that a move is just bringing do not count: nothing is missing without them."""
        return any(broker not in self.adding for broker in self.osr)

    @property
    def is_under_min_isr(self) -> bool:
        return not self.is_leaderless and len(self.isr) < self.min_insync

    @property
    def is_moving(self) -> bool:
        return bool(self.adding or self.removing)

    @property
    def move_progress(self) -> float:
        """0 to 1: how much of the log the slowest new replica has."""
        ends = [replica.log_end_offset for replica in self.replicas if replica.broker in self.adding]
        length = self.log_end_offset - self.log_start_offset
        if not ends or length <= 0:
            return 1.0
        return min(max(0.0, min(1.0, (end - self.log_start_offset) / length)) for end in ends)

    @property
    def record_count(self) -> int:
        """What a reader could see; records that compaction or transactions took away are not subtracted."""
        return max(0, self.high_watermark - self.log_start_offset)

    def as_json(self) -> dict[str, Any]:
        """The row of REST's /partitions and of the WebSocket's `partitions` frame; int64 as text, unknown as null."""
        return {
            "partition": self.partition,
            "leader": None if self.is_leaderless else self.leader,
            "leader_epoch": self.leader_epoch,
            "partition_epoch": None if self.partition_epoch < 0 else self.partition_epoch,
            "replicas": [self._replica_json(replica) for replica in self.replicas],
            "isr": list(self.isr),
            "osr": list(self.osr),
            "elr": list(self.elr),
            "adding": list(self.adding),
            "removing": list(self.removing),
            "min_insync": self.min_insync,
            "unclean_election_count": self.unclean_election_count,
            "log_start_offset": int64_text(self.log_start_offset),
            "high_watermark": int64_text(self.high_watermark),
            "last_stable_offset": int64_text(self.last_stable_offset),
            "log_end_offset": int64_text(self.log_end_offset),
            "size_bytes": int64_text(self.size_bytes),
        }

    def _replica_json(self, replica: ReplicaState) -> dict[str, Any]:
        return {
            "broker": replica.broker,
            "in_sync": replica.broker in self.isr,
            "log_end_offset": int64_text(replica.log_end_offset),
        }


def int64_text(value: int) -> str | None:
    return None if value < 0 else str(value)


def partition_state(partition: int, row: Row, heard_s: float) -> PartitionState:
    return PartitionState(
        partition=partition,
        heard_s=heard_s,
        topic_id=str(row["topic_id"]),
        replicas=tuple(ReplicaState(int(each["broker"]), int(each["log_end_offset"])) for each in row["replicas"]),
        isr=_numbers(row["isr"]),
        elr=_numbers(row.get("elr", ())),
        adding=_numbers(row.get("adding", ())),
        removing=_numbers(row.get("removing", ())),
        partition_epoch=int(row.get("partition_epoch", UNKNOWN)),
        min_insync=int(row.get("min_insync", 1)),
        unclean_election_count=int(row.get("unclean_election_count", 0)),
        **{name: int(row[name]) for name in _PARTITION_NUMBERS},
    )


_PARTITION_NUMBERS = (
    "at_ms",
    "leader",
    "leader_epoch",
    "log_start_offset",
    "high_watermark",
    "last_stable_offset",
    "log_end_offset",
    "size_bytes",
    "last_append_ms",
)


def _numbers(values: Iterable[Any]) -> tuple[int, ...]:
    return tuple(int(value) for value in values)


def with_known_offsets(state: PartitionState, known: PartitionState) -> PartitionState:
    """A partition that nobody leads still has the records that its last leader told of."""
    ends = {replica.broker: replica.log_end_offset for replica in known.replicas}
    return replace(
        state,
        log_start_offset=known.log_start_offset,
        high_watermark=known.high_watermark,
        last_stable_offset=known.last_stable_offset,
        log_end_offset=known.log_end_offset,
        size_bytes=known.size_bytes,
        last_append_ms=known.last_append_ms,
        min_insync=known.min_insync,
        replicas=tuple(ReplicaState(it.broker, ends.get(it.broker, UNKNOWN)) for it in state.replicas),
    )


@dataclass(frozen=True, slots=True)
class TenantTotals:
    """Running totals of one broker's life; sums over brokers are made by the reader."""

    broker: int
    broker_epoch: int
    at_ms: int
    bytes_in: int
    bytes_out: int
    records_in: int
    requests: int


@dataclass(frozen=True, slots=True)
class BrokerState:
    broker: int
    broker_epoch: int
    heard_s: float
    at_ms: int
    started_ms: int
    connection_count: int
    partition_count: int
    bytes_in: int
    bytes_out: int
    loop_lag_ms: int
    disk_free_bytes: int = UNKNOWN
    is_disk_low: bool = False
    leader_count: int = 0
    under_replicated_count: int = 0
    under_min_isr_count: int = 0
    leaderless_count: int = 0
    offline_count: int = 0
    size_bytes: int = 0
    is_degraded: bool = False
    damaged_count: int = 0


def broker_state(broker: int, broker_epoch: int, row: Row, heard_s: float) -> BrokerState:
    told = [field.name for field in fields(BrokerState) if field.name in row]
    values: dict[str, Any] = {name: bool(row[name]) if name.startswith("is_") else int(row[name]) for name in told}
    return BrokerState(**{**values, "broker": broker, "broker_epoch": broker_epoch, "heard_s": heard_s})


@dataclass(frozen=True, slots=True)
class MemberState:
    broker: int
    broker_epoch: int
    host: str
    rack: str
    is_fenced: bool
    is_shutting_down: bool


@dataclass(frozen=True, slots=True)
class ClusterState:
    at_ms: int
    metadata_offset: int
    controller: int
    controller_epoch: int
    voters: tuple[int, ...]
    brokers: tuple[MemberState, ...]
    unclean_election_count: int


def cluster_state(row: Row) -> ClusterState:
    return ClusterState(
        at_ms=int(row["at_ms"]),
        metadata_offset=int(row["metadata_offset"]),
        controller=int(row["controller"]),
        controller_epoch=int(row["controller_epoch"]),
        voters=_numbers(row["voters"]),
        brokers=tuple(_member(each) for each in row["brokers"]),
        unclean_election_count=int(row["unclean_election_count"]),
    )


def _member(row: Row) -> MemberState:
    return MemberState(
        int(row["broker"]),
        int(row["broker_epoch"]),
        str(row["host"]),
        str(row["rack"]),
        bool(row["is_fenced"]),
        bool(row["is_shutting_down"]),
    )
