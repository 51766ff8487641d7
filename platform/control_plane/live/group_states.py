"""What telemetry says of groups, typed and frozen. The fields are those of the engine's `telemetry/schema.py`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

UNREAD_NONE, UNREAD_UNKNOWN = -1, -2

Row = Mapping[str, Any]
Place = tuple[str, int]
"""Topic and partition, as the group's own tenant names them."""


@dataclass(frozen=True, slots=True)
class MemberTold:
    id: str
    client_id: str
    host: str
    instance_id: str
    partitions: Mapping[str, tuple[int, ...]]

    def owns(self, place: Place) -> bool:
        return place[1] in self.partitions.get(place[0], ())


@dataclass(frozen=True, slots=True)
class EventTold:
    at_ms: int
    kind: str
    member: str
    client_id: str
    generation: int
    duration_ms: int | None
    moved_count: int | None
    topics: tuple[str, ...] = ()
    dropped_topics: tuple[str, ...] = ()
    unnamed_count: int = 0
    partitions_before: int | None = None
    partitions_after: int | None = None


@dataclass(frozen=True, slots=True)
class GroupTold:
    coordinator: int
    coordinator_epoch: int
    offsets_partition: int
    at_ms: int
    heard_s: float
    state: str
    protocol: str
    protocol_type: str
    generation: int
    assignor: str
    leader: str
    state_since_ms: int
    member_count: int
    members: tuple[MemberTold, ...]
    """May be fewer than `member_count`: a row is bounded."""
    events: tuple[EventTold, ...]


@dataclass(frozen=True, slots=True)
class OffsetTold:
    coordinator_epoch: int
    at_ms: int
    heard_s: float
    topic_id: str
    offset: int
    commit_ms: int
    metadata: str
    commit_count: int
    unread_ms: int
    looked_s: float
    """When `unread_ms` was heard."""


@dataclass(frozen=True, slots=True)
class ReaderTold:
    client_id: str
    host: str
    offset: int
    connection_count: int


@dataclass(frozen=True, slots=True)
class ReadersTold:
    leader_epoch: int
    at_ms: int
    heard_s: float
    readers: tuple[ReaderTold, ...]


def group_told(broker: int, row: Row, heard_s: float) -> GroupTold:
    return GroupTold(
        coordinator=broker,
        coordinator_epoch=int(row["coordinator_epoch"]),
        offsets_partition=int(row["offsets_partition"]),
        at_ms=int(row["at_ms"]),
        heard_s=heard_s,
        state=str(row["state"]),
        protocol=str(row["protocol"]),
        protocol_type=str(row["protocol_type"]),
        generation=int(row["generation"]),
        assignor=str(row["assignor"]),
        leader=str(row["leader"]),
        state_since_ms=int(row["state_since_ms"]),
        member_count=int(row["member_count"]),
        members=tuple(_member(each) for each in row["members"]),
        events=tuple(_event(each) for each in row["events"]),
    )


def _member(row: Row) -> MemberTold:
    owned = {str(topic): _numbers(indexes) for topic, indexes in row["partitions"].items()}
    return MemberTold(str(row["id"]), str(row["client_id"]), str(row["host"]), str(row["instance_id"]), owned)


def _event(row: Row) -> EventTold:
    """A broker that has not been updated yet names no topics."""
    return EventTold(
        at_ms=int(row["at_ms"]),
        kind=str(row["kind"]),
        member=str(row["member"]),
        client_id=str(row["client_id"]),
        generation=int(row["generation"]),
        duration_ms=_known(int(row["duration_ms"])),
        moved_count=_known(int(row["moved_count"])),
        topics=tuple(str(topic) for topic in row.get("topics", ())),
        dropped_topics=tuple(str(topic) for topic in row.get("dropped_topics", ())),
        unnamed_count=int(row.get("unnamed_count", 0)),
        partitions_before=_known(int(row.get("partitions_before", -1))),
        partitions_after=_known(int(row.get("partitions_after", -1))),
    )


def offset_told(row: Row, heard_s: float) -> OffsetTold:
    numbers = ("coordinator_epoch", "at_ms", "offset", "commit_ms", "commit_count", "unread_ms")
    return OffsetTold(
        heard_s=heard_s,
        looked_s=heard_s,
        topic_id=str(row["topic_id"]),
        metadata=str(row["metadata"]),
        **{name: int(row[name]) for name in numbers},
    )


def readers_told(row: Row, heard_s: float) -> ReadersTold:
    readers = tuple(
        ReaderTold(str(it["client_id"]), str(it["host"]), int(it["offset"]), int(it["connection_count"]))
        for it in row["readers"]
    )
    return ReadersTold(int(row["leader_epoch"]), int(row["at_ms"]), heard_s, readers)


def _known(value: int) -> int | None:
    return None if value < 0 else value


def _numbers(values: Iterable[Any]) -> tuple[int, ...]:
    return tuple(int(value) for value in values)
