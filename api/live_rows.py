"""What telemetry knows of a topic right now, as REST shows it. Empty where it knows nothing (yet)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from control_plane.cluster.queries import Trouble, trouble_of
from control_plane.live.service import live
from control_plane.live.states import PartitionState
from control_plane.topics.models import Topic

UNKNOWN: dict[str, Any] = {"record_count": None, "size_bytes": None, "last_write_ms": None, "trouble": None}


def live_partitions(topic: Topic) -> list[dict[str, Any]]:
    return [row.as_json() for row in _rows(topic)]


def live_figures(topic: Topic) -> dict[str, Any]:
    rows = _rows(topic)
    if not rows:
        return UNKNOWN
    last_write_ms = max(row.last_append_ms for row in rows)
    return {
        "record_count": str(sum(row.record_count for row in rows)),
        "size_bytes": str(sum(max(0, row.size_bytes) for row in rows)),
        "last_write_ms": last_write_ms if last_write_ms > 0 else None,
        "trouble": _worst_trouble(rows),
    }


def _worst_trouble(rows: Iterable[PartitionState]) -> str | None:
    found = {trouble_of(row) for row in rows}
    return next((trouble.value for trouble in Trouble if trouble in found), None)


def _rows(topic: Topic) -> tuple[PartitionState, ...]:
    """Only a whole set of rows counts, and only those of this very topic, not of one deleted under the same name."""
    rows = live.snapshot.topic(topic.tenant_id, topic.name)
    own = tuple(row for row in rows if row.topic_id == topic.kafka_id)
    return own if len(own) == topic.partitions else ()
