"""Whether a log should be compacted now, and which of its segments. Pure: facts in, plan out.

By Kafka's rules: never the active segment, nothing at or above the limit (high watermark, first open transaction),
nothing younger than `min.compaction.lag.ms`. Due when the part that no compaction has seen makes up more than
`min.cleanable.dirty.ratio`, or when something in it is older than `max.compaction.lag.ms`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from broker_engine.log.config import LONG_MAX, LogConfig

_GROUP_OFFSETS_MAX = (1 << 31) - 1


class SegmentFacts(Protocol):
    """What the plan wants to know of a segment."""

    @property
    def base_offset(self) -> int: ...

    @property
    def end_offset(self) -> int: ...

    @property
    def size_bytes(self) -> int: ...

    @property
    def newest_ms(self) -> int:
        """When the youngest record was written, by the records' own time."""
        ...

    @property
    def first_timestamp_ms(self) -> int | None: ...


@dataclass(frozen=True, slots=True)
class CompactionPlan:
    first_dirty_offset: int
    """Keys are collected from here on: below it every key is unique already."""
    end_offset: int
    groups: tuple[tuple[int, ...], ...]
    """Base offsets of the segments to be cleaned, those in one group to become one segment."""
    dirty_ratio: float


def plan_compaction(
    segments: Sequence[SegmentFacts], config: LogConfig, *, clean_end_offset: int, limit_offset: int, now_ms: int
) -> CompactionPlan | None:
    """`segments` with the active one last. None: not now."""
    if not config.is_compacting:
        return None
    cleanable = _cleanable(segments[:-1], config, limit_offset, now_ms)
    dirty = [segment for segment in cleanable if segment.end_offset > clean_end_offset and segment.size_bytes]
    total_bytes = sum(segment.size_bytes for segment in cleanable)
    if not dirty or not total_bytes:
        return None
    dirty_ratio = sum(segment.size_bytes for segment in dirty) / total_bytes
    if dirty_ratio <= config.min_cleanable_dirty_ratio and not _is_overdue(dirty[0], config, now_ms):
        return None
    first_dirty_offset = max(dirty[0].base_offset, clean_end_offset)
    return CompactionPlan(first_dirty_offset, cleanable[-1].end_offset, _group(cleanable, config), dirty_ratio)


def _cleanable(sealed: Sequence[SegmentFacts], config: LogConfig, limit_offset: int, now_ms: int) -> list[SegmentFacts]:
    found = []
    for segment in sealed:
        is_young = config.min_compaction_lag_ms > 0 and segment.newest_ms > now_ms - config.min_compaction_lag_ms
        if segment.end_offset > limit_offset or is_young:
            break
        found.append(segment)
    return found


def _is_overdue(first_dirty: SegmentFacts, config: LogConfig, now_ms: int) -> bool:
    if config.max_compaction_lag_ms >= LONG_MAX:
        return False
    written_ms = first_dirty.first_timestamp_ms
    return written_ms is not None and now_ms - written_ms > config.max_compaction_lag_ms


def _group(segments: Sequence[SegmentFacts], config: LogConfig) -> tuple[tuple[int, ...], ...]:
    """Neighbours that fit into one segment even if nothing of them goes."""
    groups: list[list[SegmentFacts]] = []
    for segment in segments:
        group = groups[-1] if groups else []
        size_bytes = sum(each.size_bytes for each in group) + segment.size_bytes
        if (
            group
            and size_bytes <= config.segment_bytes
            and segment.end_offset - group[0].base_offset <= _GROUP_OFFSETS_MAX
        ):
            group.append(segment)
        else:
            groups.append([segment])
    return tuple(tuple(segment.base_offset for segment in group) for group in groups)
