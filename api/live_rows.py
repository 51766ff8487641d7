"""What telemetry knows of a topic right now, as REST shows it. Empty where it knows nothing (yet)."""

from __future__ import annotations

from typing import Any

from control_plane.live.service import live
from control_plane.topics.models import Topic

UNKNOWN: dict[str, Any] = {"record_count": None, "size_bytes": None, "last_write_ms": None}


def live_partitions(topic: Topic) -> list[dict[str, Any]]:
    return [row.as_json() for row in _rows(topic)]


def live_figures(topic: Topic) -> dict[str, Any]:
    rows = _rows(topic)
    if not rows:
        return UNKNOWN
    last_write_ms = max(row.last_append_ms for row in rows)
    return {
        "record_count": str(sum(row.record_count for row in rows)),
        "size_bytes": str(sum(row.size_bytes for row in rows)),
        "last_write_ms": last_write_ms if last_write_ms > 0 else None,
    }


def _rows(topic: Topic) -> tuple[Any, ...]:
    """Only a whole set of rows counts, and only those of this very topic, not of one deleted under the same name."""
    rows = live.snapshot.topic(topic.tenant_id, topic.name)
    own = tuple(row for row in rows if row.topic_id == topic.kafka_id)
    return own if len(own) == topic.partitions else ()
