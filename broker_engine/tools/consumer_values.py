"""Values of KIP-848 groups' records in words: what a group, a member or a target assignment says."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from enum import IntEnum
from typing import Any
from uuid import UUID

from broker_engine.groups.consumer.member import ClassicFacts


def describe_consumer_value(value: Any) -> str:
    """Of a decoded value (see groups.consumer.records); empty for None."""
    if value is None:
        return ""
    if isinstance(value, Mapping):
        return f"partitions={_shown(value)}"
    return " ".join(f"{name}={_shown(each)}" for name, each in _named(value))


def _named(value: Any) -> list[tuple[str, Any]]:
    if is_dataclass(value):
        return [(each.name, getattr(value, each.name)) for each in fields(value)]
    return list(value._asdict().items())


def _shown(value: Any) -> str:
    if isinstance(value, Mapping):
        return f"[{', '.join(_topic_shown(topic_id, value[topic_id]) for topic_id in sorted(value))}]"
    if isinstance(value, frozenset | tuple):
        return f"[{', '.join(map(str, sorted(value)))}]"
    if isinstance(value, IntEnum):
        return value.name
    if isinstance(value, ClassicFacts):
        protocols = ", ".join(name for name, _ in value.protocols)
        return f"(session_timeout_ms={value.session_timeout_ms} protocols=[{protocols}])"
    return str(value)


def _topic_shown(topic_id: UUID, partitions: Mapping[int, int] | frozenset[int]) -> str:
    """Each partition; with the epoch in which it was given, where that is known."""
    indexes = sorted(partitions)
    if isinstance(partitions, Mapping):
        return f"{_id_text(topic_id)}: {' '.join(f'{index}@{partitions[index]}' for index in indexes)}"
    return f"{_id_text(topic_id)}: {' '.join(map(str, indexes))}"


def _id_text(topic_id: UUID) -> str:
    """As Kafka's tools show it."""
    return base64.urlsafe_b64encode(topic_id.bytes).rstrip(b"=").decode()
