"""The values that callers give and get."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple

Headers = tuple[tuple[str, bytes | None], ...]


class TopicPartition(NamedTuple):
    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"


class Record(NamedTuple):
    """A record as a reader gets it."""

    topic: str
    partition: int
    offset: int
    timestamp_ms: int
    key: bytes | None
    value: bytes | None
    headers: Headers = ()


class RecordMetadata(NamedTuple):
    """Where a sent record is. Offset -1: acks=0, or the broker knew it as a duplicate and has forgotten where."""

    topic: str
    partition: int
    offset: int
    timestamp_ms: int


@dataclass(frozen=True, slots=True)
class Timestamp:
    """Start at the first record with this time or a later one; at the end where there is none."""

    ms: int


Start = int | Literal["earliest", "latest"] | Timestamp
"""Where to begin: an offset, an end of the log, or a time."""


@dataclass(frozen=True, slots=True)
class FetchedPartition:
    records: list[Record]
    high_watermark: int
    last_stable_offset: int
    log_start_offset: int
    next_offset: int
    """Where the next fetch continues: after the last record, and after control records that no caller sees."""


@dataclass(frozen=True, slots=True)
class FoundOffset:
    """An answer of ListOffsets; offset and timestamp -1: no record is that young."""

    offset: int
    timestamp_ms: int
    leader_epoch: int
