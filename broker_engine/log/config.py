"""What one log needs of its topic's configuration. Replaceable as a whole at any time: `log.config = ...`."""

from __future__ import annotations

from dataclasses import dataclass

DAY_MS = 24 * 3600 * 1000
WEEK_MS = 7 * DAY_MS
FOREVER = -1
LONG_MAX = (1 << 63) - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class LogConfig:
    segment_bytes: int = 1 << 30
    segment_ms: int = WEEK_MS
    segment_jitter_ms: int = 0
    """A segment rolls up to this much before `segment_ms`, each by a share of its own."""
    segment_index_bytes: int = 10 << 20
    index_interval_bytes: int = 4096
    retention_ms: int = WEEK_MS
    """-1 keeps forever."""
    retention_bytes: int = FOREVER
    """-1 keeps forever."""
    file_delete_delay_ms: int = 0
    """How long a removed segment's files stay, where the log's owner has a place for them to wait."""
    is_deleting: bool = True
    """cleanup.policy contains `delete`: without it neither bound removes anything."""
    is_compacting: bool = False
    """cleanup.policy contains `compact`."""
    min_cleanable_dirty_ratio: float = 0.5
    min_compaction_lag_ms: int = 0
    max_compaction_lag_ms: int = LONG_MAX
    delete_retention_ms: int = DAY_MS
    """How long compaction keeps tombstones and the markers of transactions that have no record left."""
    decompressed_bytes_max: int = 100 << 20
    """How much a look-up by time may decompress of one stored batch."""

    def roll_ms(self, jitter_share: float) -> int:
        """The age at which a segment rolls. The share is below 1, so something is left however large the jitter."""
        return self.segment_ms - int(jitter_share * min(self.segment_jitter_ms, self.segment_ms))
