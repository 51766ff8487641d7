"""What the checkpoints of the last run say of partitions that are not open yet."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from typing import NamedTuple

from broker_engine.server.checkpoints import TopicPartition


class Saved(NamedTuple):
    """Of one partition."""

    recovery_point: int | None = None
    log_start_offset: int = 0
    high_watermark: int = 0


@dataclass(slots=True)
class SavedOffsets:
    """Kept until a partition is open, and written again with the others' until then: losing them to a log that cannot
    be opened for the moment would bring back what was deleted, and take damage for a torn tail.
    """

    recovery_points: dict[TopicPartition, int] = field(default_factory=dict)
    log_starts: dict[TopicPartition, int] = field(default_factory=dict)
    high_watermarks: dict[TopicPartition, int] = field(default_factory=dict)

    def of(self, key: TopicPartition) -> Saved:
        return Saved(self.recovery_points.get(key), self.log_starts.get(key, 0), self.high_watermarks.get(key, 0))

    def keep_only(self, keys: Collection[TopicPartition]) -> None:
        """A topic that gets the name of one that is gone is another one."""
        for offsets in (self.recovery_points, self.log_starts, self.high_watermarks):
            for key in [key for key in offsets if key not in keys]:
                del offsets[key]
