"""Which segments are due for deletion, and taking one out of its directory."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass

from broker_engine.log.config import FOREVER, LogConfig
from broker_engine.log.file_seam import Files
from broker_engine.log.segment import DELETED_SUFFIX, SEGMENT_SUFFIXES, Segment


def expired_count(
    segments: Sequence[Segment], config: LogConfig, now_ms: int, high_watermark: int, log_start_offset: int
) -> int:
    """How many of the oldest segments may go: below the log's start, over the size bound, or past their time."""
    surplus_bytes = sum(segment.size_bytes for segment in segments) - config.retention_bytes
    for count, segment in enumerate(segments):
        surplus_bytes -= segment.size_bytes
        is_active = count == len(segments) - 1
        is_committed = segment.end_offset <= high_watermark
        is_below_start = not is_active and segment.end_offset <= log_start_offset
        is_over = not is_active and config.is_deleting and config.retention_bytes != FOREVER and surplus_bytes >= 0
        is_due = is_below_start or is_over or _is_too_old(segment, config, now_ms, is_active=is_active)
        if not (is_committed and is_due):
            return count
    return len(segments)


def _is_too_old(segment: Segment, config: LogConfig, now_ms: int, *, is_active: bool) -> bool:
    is_empty = segment.size_bytes == 0
    if not config.is_deleting or config.retention_ms == FOREVER or (is_empty and is_active):
        return False
    # Compaction may leave nothing of a segment, and of what cannot be read nobody knows the time: as old as its file.
    newest_ms = segment.created_ms if is_empty or segment.holes else segment.newest_ms
    return now_ms - newest_ms > config.retention_ms


@dataclass(slots=True)
class DeletedSegment:
    """A segment that no reader finds any more. Its bytes go with `remove`; readers that have it pinned go on."""

    base_offset: int
    size_bytes: int
    files: Files
    paths: list[str]

    @classmethod
    def take_out(cls, segment: Segment, files: Files) -> DeletedSegment:
        """Rename to `.deleted`: from here on a restart forgets it too."""
        size_bytes = segment.size_bytes
        paths = []
        segment.close()
        for suffix in SEGMENT_SUFFIXES:
            path = segment.path(suffix)
            if files.exists(path):
                files.rename(path, path + DELETED_SUFFIX)
                paths.append(path + DELETED_SUFFIX)
        return cls(segment.base_offset, size_bytes, files, paths)

    def remove(self) -> None:
        """Blocks: large files take their time."""
        for path in self.paths:
            with suppress(FileNotFoundError):  # removed by a restart in between
                self.files.unlink(path)
