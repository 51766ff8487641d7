"""Groups as REST and the WebSocket show them. int64 as text, unknown as null; points of charts are plain numbers."""

from __future__ import annotations

from typing import Any

from control_plane.groups.queries import GroupTruth, PartitionTruth
from control_plane.live.group_book import LagPoint
from control_plane.live.group_states import EventTold, MemberTold
from control_plane.live.states import int64_text

EVENTS_SHOWN = 50
POINTS_OF_LIST = 60


def show_group(truth: GroupTruth) -> dict[str, Any]:
    """A row of the list."""
    told, worst = truth.page.told, truth.worst_partition
    return {
        "name": truth.page.name,
        "state": told.state,
        "protocol": told.protocol,
        "status": truth.status.value,
        "words": truth.words,
        "worst": None if worst is None else {"topic": worst.topic, "partition": worst.partition},
        "member_count": told.member_count,
        "topics": truth.topics,
        "partition_count": len(truth.partitions),
        "lag": _text(truth.lag),
        "lag_seconds": _rounded(truth.lag_s),
        "trend": truth.trend.value,
        "eta_seconds": _rounded(truth.eta_s),
        "last_commit_ms": truth.last_commit_ms,
        "coordinator": told.coordinator,
        "offsets_partition": told.offsets_partition,
        "generation": told.generation,
        "lag_points": [point.records for point in truth.lag_history[-POINTS_OF_LIST:]],
    }


def show_group_page(truth: GroupTruth) -> dict[str, Any]:
    """Everything: the page of one group, and what its watchers get."""
    told = truth.page.told
    return {
        **show_group(truth),
        "protocol_type": told.protocol_type,
        "assignor": told.assignor or None,
        "leader": told.leader or None,
        "state_since_ms": told.state_since_ms or None,
        "members": [show_member(member) for member in told.members],
        "partitions": [show_partition(row) for row in truth.partitions],
        "events": [show_event(event) for event in truth.page.events[-EVENTS_SHOWN:]],
        "lag_history": [show_point(point) for point in truth.lag_history],
    }


def show_member(member: MemberTold) -> dict[str, Any]:
    owned = [{"topic": topic, "partitions": list(indexes)} for topic, indexes in sorted(member.partitions.items())]
    return {
        "id": member.id,
        "client_id": member.client_id,
        "host": member.host.lstrip("/"),
        "instance_id": member.instance_id or None,
        "partitions": owned,
    }


def show_partition(row: PartitionTruth) -> dict[str, Any]:
    told, state = row.committed, row.state
    return {
        "topic": row.topic,
        "partition": row.partition,
        "status": row.verdict.status.value,
        "words": row.verdict.words,
        "owner": None if row.owner is None else row.owner.id,
        "committed": None if told is None else int64_text(told.offset),
        "commit_ms": None if told is None else told.commit_ms,
        # librdkafka's binding for Python sends the end mark of its C string along.
        "metadata": None if told is None else told.metadata.rstrip("\0"),
        "commit_rate": None if row.commit_rate is None else round(row.commit_rate, 3),
        "position": _text(row.position),
        "position_doubt": None if row.doubt is None else row.doubt.value,
        "repeat_count": _text(row.repeat_count),
        "log_start_offset": None if state is None else int64_text(state.log_start_offset),
        "high_watermark": None if state is None else int64_text(state.high_watermark),
        "last_stable_offset": None if state is None else int64_text(state.last_stable_offset),
        "lag": _text(row.lag),
        "lag_seconds": _rounded(row.lag_s),
        "trend": row.verdict.trend.value,
        "eta_seconds": _rounded(row.verdict.eta_s),
        "lag_points": [sample.lag for sample in row.samples],
    }


def show_event(event: EventTold) -> dict[str, Any]:
    return {
        "at_ms": event.at_ms,
        "kind": event.kind,
        "member": event.member or None,
        "client_id": event.client_id or None,
        "generation": event.generation,
        "duration_ms": event.duration_ms,
        "moved_count": event.moved_count,
        "topics": list(event.topics),
        "dropped_topics": list(event.dropped_topics),
        "unnamed_count": event.unnamed_count,
        "partitions_before": event.partitions_before,
        "partitions_after": event.partitions_after,
    }


def show_point(point: LagPoint) -> dict[str, Any]:
    return {"at_ms": point.at_ms, "records": point.records, "seconds": _rounded(point.seconds)}


def _text(value: int | None) -> str | None:
    return None if value is None else str(value)


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 1)
