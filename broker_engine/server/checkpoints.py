"""Kafka's offset checkpoint files: `recovery-point-offset-checkpoint`, `replication-offset-checkpoint` (high
watermarks) and `log-start-offset-checkpoint`, one set per data directory. Advisory: a wrong or missing one costs
time, never records.
"""

from __future__ import annotations

from collections.abc import Iterable

from broker_engine.log.files import Files
from broker_engine.names import Name, parse_physical, physical

RECOVERY_POINTS = "recovery-point-offset-checkpoint"
HIGH_WATERMARKS = "replication-offset-checkpoint"
LOG_STARTS = "log-start-offset-checkpoint"

_VERSION = "0"

TopicPartition = tuple[Name, int]
Offsets = Iterable[tuple[TopicPartition, int]]
"""Not a mapping: every few seconds ten thousand keys would be hashed for nothing."""


def format_checkpoint(offsets: Offsets) -> bytes:
    """Version, count, then `topic partition offset` per line; the topic by its physical name, which has no blanks."""
    last_name, topic = None, ""
    rows = []
    for (name, partition), offset in offsets:
        if name is not last_name:  # a topic's partitions stand together
            last_name, topic = name, physical(name)
        rows.append(f"{topic} {partition} {offset}")
    return ("\n".join([_VERSION, str(len(rows)), *rows]) + "\n").encode()


def parse_checkpoint(data: bytes) -> dict[TopicPartition, int]:
    """ValueError where it is not one."""
    version, count, *rows = data.decode().rstrip("\n").split("\n")
    if version != _VERSION or int(count) != len(rows):
        raise ValueError(f"version {version!r}, {count!r} entries announced, {len(rows)} found")
    offsets, names = {}, dict[str, Name]()
    for row in rows:
        topic, partition, offset = row.split(" ")
        name = names.get(topic) or names.setdefault(topic, parse_physical(topic))
        offsets[name, int(partition)] = int(offset)
    return offsets


def read_checkpoint(files: Files, name: str) -> dict[TopicPartition, int]:
    """Empty where there is none, or none that can be read."""
    if not files.exists(name):
        return {}
    try:
        return parse_checkpoint(files.read_small(name))
    except ValueError:
        return {}


def write_checkpoint(files: Files, name: str, offsets: Offsets) -> None:
    files.write_atomic(name, format_checkpoint(offsets), is_durable=True)
