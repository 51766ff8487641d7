"""The newest state that the brokers have told of themselves, folded from `__telemetry` (contracts.md section 9).

One thread (the event loop's) folds records in, any thread may read. States are immutable, so what a reader holds stays
whole. Unknown kinds and versions are skipped, since a newer broker may already write them.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any

from control_plane.live.group_book import GroupBook, GroupPage
from control_plane.live.group_states import Place, ReadersTold
from control_plane.live.states import (
    BrokerState,
    ClusterState,
    PartitionState,
    TenantTotals,
    broker_state,
    cluster_state,
    partition_state,
    with_known_offsets,
)

VERSION = 1
CLOCK_SET_BACK_MS = 120_000
"""A reader begins at most a minute back: a row that is older than this beside the known one has a clock set back."""

TopicKey = tuple[str, str]
Listener = Callable[[TopicKey], None]
Subject = Mapping[str, Any]


class BadTelemetry(ValueError):  # noqa: N818 - reads as what it is
    """A record that is not what the schema says."""


class Snapshot:
    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._topics: dict[TopicKey, dict[int, PartitionState]] = {}
        self._tenants: dict[str, dict[int, TenantTotals]] = {}
        self._brokers: dict[int, BrokerState] = {}
        self._cluster: ClusterState | None = None
        self._groups = GroupBook()
        self._listeners: list[Listener] = []

    # -- readers, from any thread

    @property
    def now_s(self) -> float:
        """To compare with `heard_s`."""
        return self._clock()

    def topic(self, tenant: str, name: str) -> tuple[PartitionState, ...]:
        """Rows in the order of partitions; empty where nothing is known."""
        with self._lock:
            rows = self._topics.get((tenant, name), {})
            return tuple(rows[partition] for partition in sorted(rows))

    def topics(self, tenant: str) -> dict[str, tuple[PartitionState, ...]]:
        with self._lock:
            own = {name: rows for (owner, name), rows in self._topics.items() if owner == tenant}
            return {name: tuple(rows[partition] for partition in sorted(rows)) for name, rows in own.items()}

    def partitions_where(self, is_wanted: Callable[[PartitionState], bool]) -> list[tuple[TopicKey, PartitionState]]:
        """Of all tenants, in the order of their names: for operators."""
        with self._lock:
            found = [(key, row) for key, rows in self._topics.items() for row in rows.values() if is_wanted(row)]
        return sorted(found, key=lambda pair: (pair[0], pair[1].partition))

    def tenant(self, tenant: str) -> tuple[TenantTotals, ...]:
        with self._lock:
            return tuple(self._tenants.get(tenant, {}).values())

    def brokers(self) -> tuple[BrokerState, ...]:
        with self._lock:
            return tuple(self._brokers[broker] for broker in sorted(self._brokers))

    def cluster(self) -> ClusterState | None:
        """None until a broker has spoken for the cluster."""
        with self._lock:
            return self._cluster

    def groups(self, tenant: str) -> list[GroupPage]:
        """In the order of their names."""
        with self._lock:
            return self._groups.pages(tenant, self._clock())

    def group(self, tenant: str, name: str) -> GroupPage | None:
        with self._lock:
            return self._groups.page(tenant, name, self._clock())

    def readers(self, tenant: str) -> dict[Place, ReadersTold]:
        """Who fetches from the tenant's partitions, and from where."""
        with self._lock:
            return self._groups.readers(tenant, self._clock())

    # -- the one writer

    def add_listener(self, listener: Listener) -> None:
        """Called in the writer's thread after each change of a topic's rows."""
        self._listeners.append(listener)

    def apply(self, key: bytes | None, value: bytes | None) -> None:
        subject, row = _object(key), _object(value)
        if subject.get("v") != VERSION:
            return
        folds = {
            "partition": self._fold_partition,
            "tenant": self._fold_tenant,
            "broker": self._fold_broker,
            "cluster": self._fold_cluster,
            "group": self._fold_group,
            "group_offset": self._fold_offset,
            "readers": self._fold_readers,
        }
        fold = folds.get(str(subject["kind"]))
        if fold is None:
            return
        try:
            fold(subject, row)
        except (KeyError, TypeError, ValueError) as error:
            raise BadTelemetry(f"{subject}: {error!r}") from error

    def sample_groups(self, now_ms: int) -> None:
        """Now and then: the histories of groups get a point."""
        with self._lock:
            self._groups.sample(now_ms, self._clock(), self._end_of)

    def _end_of(self, tenant: str, place: Place, topic_id: str) -> int | None:
        state = self._topics.get((tenant, place[0]), {}).get(place[1])
        if state is None or state.high_watermark < 0 or topic_id not in ("", state.topic_id):
            return None
        return state.high_watermark

    def _fold_group(self, subject: Subject, row: Subject) -> None:
        with self._lock:
            self._groups.fold_group(subject, row, self._clock())

    def _fold_offset(self, subject: Subject, row: Subject) -> None:
        with self._lock:
            self._groups.fold_offset(subject, row, self._clock())

    def _fold_readers(self, subject: Subject, row: Subject) -> None:
        with self._lock:
            self._groups.fold_readers(subject, row, self._clock())

    def _fold_partition(self, subject: Subject, row: Subject) -> None:
        topic = (str(subject["tenant"]), str(subject["name"]))
        state = partition_state(int(subject["partition"]), row, self._clock())
        with self._lock:
            rows = self._topics.setdefault(topic, {})
            is_changed = _put(rows, state, is_deleted=bool(row.get("is_deleted", False)))
            if not rows:
                del self._topics[topic]
        if is_changed:
            for listener in self._listeners:
                listener(topic)

    def _fold_tenant(self, subject: Subject, row: Subject) -> None:
        names = ("at_ms", "bytes_in", "bytes_out", "records_in", "requests")
        broker = int(subject["broker"])
        totals = TenantTotals(broker, int(subject["broker_epoch"]), *(int(row[name]) for name in names))
        with self._lock:
            self._tenants.setdefault(str(subject["tenant"]), {})[broker] = totals

    def _fold_broker(self, subject: Subject, row: Subject) -> None:
        state = broker_state(int(subject["broker"]), int(subject["broker_epoch"]), row, self._clock())
        with self._lock:
            known = self._brokers.get(state.broker)
            if known is None or _is_newer_life(state, known):
                self._brokers[state.broker] = state

    def _fold_cluster(self, _subject: Subject, row: Subject) -> None:
        """A deposed controller may go on telling for a moment: the quorum's epoch tells them apart."""
        state = cluster_state(row)
        with self._lock:
            known = self._cluster
            if known is None or _age(known) <= _age(state):
                self._cluster = state


def _age(cluster: ClusterState) -> tuple[int, int]:
    return cluster.controller_epoch, cluster.metadata_offset


def _object(data: bytes | None) -> Mapping[str, Any]:
    try:
        parsed = json.loads(data or b"")
    except ValueError as error:
        raise BadTelemetry(f"not JSON: {error}") from error
    if not isinstance(parsed, dict):
        raise BadTelemetry("not a JSON object")
    return parsed


def _put(rows: dict[int, PartitionState], state: PartitionState, *, is_deleted: bool) -> bool:
    """Brokers' partitions are read side by side, so an old leader's last row may come after the new leader's first."""
    known = rows.get(state.partition)
    if known is not None and not _is_newer(state, known):
        return False
    if is_deleted:
        return rows.pop(state.partition, None) is not None
    if state.is_leaderless and known is not None and known.topic_id == state.topic_id:
        state = with_known_offsets(state, known)
    rows[state.partition] = state
    return True


def _is_newer(state: PartitionState, known: PartitionState) -> bool:
    if state.topic_id != known.topic_id:  # deleted and made again: epochs start over, time does not
        return state.at_ms >= known.at_ms
    if state.leader_epoch != known.leader_epoch:
        return state.leader_epoch > known.leader_epoch
    return _is_later(state.at_ms, known.at_ms)


def _is_newer_life(state: BrokerState, known: BrokerState) -> bool:
    if state.broker_epoch != known.broker_epoch:
        return state.broker_epoch > known.broker_epoch
    return _is_later(state.at_ms, known.at_ms)


def _is_later(at_ms: int, known_ms: int) -> bool:
    return at_ms >= known_ms or at_ms < known_ms - CLOCK_SET_BACK_MS
