"""The newest state that the brokers have told of themselves, folded from `__telemetry` (contracts.md section 9).

One thread (the event loop's) folds records in, any thread may read. Rows are immutable, so what a reader holds stays
whole. The fields are those of the engine's `telemetry/schema.py`; unknown fields, kinds and versions are skipped, since
a newer broker may already write them.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

VERSION = 1

TopicKey = tuple[str, str]
Listener = Callable[[TopicKey], None]


class BadTelemetry(ValueError):  # noqa: N818 - reads as what it is
    """A record that is not what the schema says."""


@dataclass(frozen=True, slots=True)
class ReplicaState:
    broker: int
    log_end_offset: int


@dataclass(frozen=True, slots=True)
class PartitionState:
    partition: int
    at_ms: int
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

    @property
    def record_count(self) -> int:
        """What a reader could see; records that compaction or transactions took away are not subtracted."""
        return max(0, self.high_watermark - self.log_start_offset)

    def as_json(self) -> dict[str, Any]:
        """The row of REST's /partitions and of the WebSocket's `partitions` frame; int64 as text."""
        return {
            "partition": self.partition,
            "leader": self.leader,
            "leader_epoch": self.leader_epoch,
            "replicas": [self._replica_json(replica) for replica in self.replicas],
            "isr": list(self.isr),
            "log_start_offset": str(self.log_start_offset),
            "high_watermark": str(self.high_watermark),
            "last_stable_offset": str(self.last_stable_offset),
            "log_end_offset": str(self.log_end_offset),
            "size_bytes": str(self.size_bytes),
        }

    def _replica_json(self, replica: ReplicaState) -> dict[str, Any]:
        known = None if replica.log_end_offset < 0 else str(replica.log_end_offset)
        return {"broker": replica.broker, "in_sync": replica.broker in self.isr, "log_end_offset": known}


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
    at_ms: int
    started_ms: int
    connection_count: int
    partition_count: int
    bytes_in: int
    bytes_out: int
    loop_lag_ms: int


class Snapshot:
    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._topics: dict[TopicKey, dict[int, PartitionState]] = {}
        self._tenants: dict[str, dict[int, TenantTotals]] = {}
        self._brokers: dict[int, BrokerState] = {}
        self._listeners: list[Listener] = []

    # -- readers, from any thread

    def topic(self, tenant: str, name: str) -> tuple[PartitionState, ...]:
        """Rows in the order of partitions; empty where nothing is known."""
        with self._lock:
            rows = self._topics.get((tenant, name), {})
            return tuple(rows[partition] for partition in sorted(rows))

    def topics(self, tenant: str) -> dict[str, tuple[PartitionState, ...]]:
        with self._lock:
            own = {name: rows for (owner, name), rows in self._topics.items() if owner == tenant}
            return {name: tuple(rows[partition] for partition in sorted(rows)) for name, rows in own.items()}

    def tenant(self, tenant: str) -> tuple[TenantTotals, ...]:
        with self._lock:
            return tuple(self._tenants.get(tenant, {}).values())

    def brokers(self) -> tuple[BrokerState, ...]:
        with self._lock:
            return tuple(self._brokers[broker] for broker in sorted(self._brokers))

    # -- the one writer

    def add_listener(self, listener: Listener) -> None:
        """Called in the writer's thread after each change of a topic's rows."""
        self._listeners.append(listener)

    def apply(self, key: bytes | None, value: bytes | None) -> None:
        subject, row = _object(key), _object(value)
        if subject.get("v") != VERSION:
            return
        fold = {"partition": self._partition, "tenant": self._tenant, "broker": self._broker}.get(str(subject["kind"]))
        if fold is None:
            return
        try:
            fold(subject, row)
        except (KeyError, TypeError, ValueError) as error:
            raise BadTelemetry(f"{subject}: {error!r}") from error

    def _partition(self, subject: Mapping[str, Any], row: Mapping[str, Any]) -> None:
        topic = (str(subject["tenant"]), str(subject["name"]))
        state = _partition_state(int(subject["partition"]), row)
        with self._lock:
            rows = self._topics.setdefault(topic, {})
            is_changed = _fold_partition(rows, state, is_deleted=bool(row.get("is_deleted", False)))
            if not rows:
                del self._topics[topic]
        if is_changed:
            for listener in self._listeners:
                listener(topic)

    def _tenant(self, subject: Mapping[str, Any], row: Mapping[str, Any]) -> None:
        names = ("at_ms", "bytes_in", "bytes_out", "records_in", "requests")
        broker = int(subject["broker"])
        totals = TenantTotals(broker, int(subject["broker_epoch"]), *(int(row[name]) for name in names))
        with self._lock:
            self._tenants.setdefault(str(subject["tenant"]), {})[broker] = totals

    def _broker(self, subject: Mapping[str, Any], row: Mapping[str, Any]) -> None:
        counts = ("connection_count", "partition_count", "bytes_in", "bytes_out", "loop_lag_ms")
        names = ("at_ms", "started_ms", *counts)
        broker = int(subject["broker"])
        state = BrokerState(broker, int(subject["broker_epoch"]), *(int(row[name]) for name in names))
        with self._lock:
            self._brokers[broker] = state


def _object(data: bytes | None) -> Mapping[str, Any]:
    try:
        parsed = json.loads(data or b"")
    except ValueError as error:
        raise BadTelemetry(f"not JSON: {error}") from error
    if not isinstance(parsed, dict):
        raise BadTelemetry("not a JSON object")
    return parsed


def _partition_state(partition: int, row: Mapping[str, Any]) -> PartitionState:
    return PartitionState(
        partition=partition,
        at_ms=int(row["at_ms"]),
        topic_id=str(row["topic_id"]),
        leader=int(row["leader"]),
        leader_epoch=int(row["leader_epoch"]),
        isr=tuple(int(broker) for broker in row["isr"]),
        replicas=tuple(ReplicaState(int(each["broker"]), int(each["log_end_offset"])) for each in row["replicas"]),
        log_start_offset=int(row["log_start_offset"]),
        high_watermark=int(row["high_watermark"]),
        last_stable_offset=int(row["last_stable_offset"]),
        log_end_offset=int(row["log_end_offset"]),
        size_bytes=int(row["size_bytes"]),
        last_append_ms=int(row["last_append_ms"]),
    )


def _fold_partition(rows: dict[int, PartitionState], state: PartitionState, *, is_deleted: bool) -> bool:
    """Brokers' partitions are read side by side, so an old leader's last row may come after the new leader's first."""
    known = rows.get(state.partition)
    if known is not None and not _is_newer(state, known):
        return False
    if is_deleted:
        return rows.pop(state.partition, None) is not None
    rows[state.partition] = state
    return True


def _is_newer(state: PartitionState, known: PartitionState) -> bool:
    if state.topic_id != known.topic_id:  # deleted and made again: epochs start over, time does not
        return state.at_ms >= known.at_ms
    return (state.leader_epoch, state.at_ms) >= (known.leader_epoch, known.at_ms)
