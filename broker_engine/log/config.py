"""What one log needs of its topic's configuration. Replaceable as a whole at any time: `log.config = ...`."""

from __future__ import annotations

from dataclasses import dataclass

WEEK_MS = 7 * 24 * 3600 * 1000
FOREVER = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class LogConfig:
    segment_bytes: int = 1 << 30
    segment_ms: int = WEEK_MS
    segment_index_bytes: int = 10 << 20
    index_interval_bytes: int = 4096
    retention_ms: int = WEEK_MS
    """-1 keeps forever."""
    retention_bytes: int = FOREVER
    """-1 keeps forever."""
    is_deleting: bool = True
    """cleanup.policy contains `delete`: without it neither bound removes anything."""
    is_compacting: bool = False
    """cleanup.policy contains `compact`."""
    decompressed_bytes_max: int = 100 << 20
    """How much a look-up by time may decompress of one stored batch."""
