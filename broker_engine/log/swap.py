"""How a cleaned segment takes the place of those it was made from, so that a crash leaves the old ones or the new one.

    NNN.log.cleaned   being written; a crash forgets it
    NNN.log.swap      whole and synced: from here on it counts, and a restart finishes what is left to do
    NNN.log           the old ones have gone as `.deleted`, durably, before this name is given

The names are Kafka's, so that either can finish what the other began.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence

from broker_engine.log.file_seam import Files
from broker_engine.log.scan import scan_batches
from broker_engine.log.segment import INDEX_SUFFIX, LOG_SUFFIX, TIME_INDEX_SUFFIX, TXN_INDEX_SUFFIX, segment_path

CLEANED_SUFFIX = ".cleaned"
SWAP_SUFFIX = ".swap"
# The log last: its name is what counts.
_SUFFIXES = (INDEX_SUFFIX, TIME_INDEX_SUFFIX, TXN_INDEX_SUFFIX, LOG_SUFFIX)

log = logging.getLogger(__name__)


def commit_cleaned(files: Files, directory: str, base_offset: int) -> None:
    """`.cleaned` becomes `.swap`. Blocks until that is durable."""
    _rename_all(files, directory, base_offset, CLEANED_SUFFIX, SWAP_SUFFIX)
    files.sync_dir(directory)


def finish_swap(files: Files, directory: str, base_offset: int) -> None:
    """The old segments have other names already: `.swap` becomes the segment. Blocks until that is durable."""
    files.sync_dir(directory)
    _rename_all(files, directory, base_offset, SWAP_SUFFIX, "")
    files.sync_dir(directory)


def discard(files: Files, directory: str, base_offset: int) -> None:
    """Nothing comes of this cleaning."""
    for suffix in reversed(_SUFFIXES):
        for stage in (SWAP_SUFFIX, CLEANED_SUFFIX):
            path = segment_path(directory, base_offset, suffix) + stage
            if files.exists(path):
                files.unlink(path)


def swapped_bases(names: Sequence[str]) -> list[int]:
    """Of whole segments among these names that wait to take the place of others."""
    return [int(name.partition(".")[0]) for name in names if name.endswith(LOG_SUFFIX + SWAP_SUFFIX)]


def complete_swaps(files: Files, directory: str, names: Sequence[str]) -> Sequence[str]:
    """At start: finish what a crash, of ours or of Kafka, interrupted. Indexes are left to be rebuilt.

    The names in the directory before, and after: thousands of partitions are not listed without need.
    """
    bases = swapped_bases(names)
    for base_offset in bases:
        _complete(files, directory, base_offset)
    stages = (SWAP_SUFFIX, CLEANED_SUFFIX)
    left = [name for name in names if name.endswith(stages) and not name.endswith(LOG_SUFFIX + SWAP_SUFFIX)]
    for name in left:
        files.unlink(f"{directory}/{name}")
    return files.list_dir(directory) if bases or left else names


def _complete(files: Files, directory: str, base_offset: int) -> None:
    swap_path = segment_path(directory, base_offset, LOG_SUFFIX) + SWAP_SUFFIX
    handle = files.open(swap_path)
    last_offset = max((batch.header.last_offset for batch in scan_batches(handle, 0)), default=base_offset)
    handle.close()
    # What is left of an old segment above the last offset was superseded, or is there once more: no harm either way.
    for name in files.list_dir(directory):
        stem, dot, suffix = name.partition(".")
        is_segment = stem.isdecimal() and dot + suffix in _SUFFIXES
        if is_segment and base_offset <= int(stem) <= last_offset:
            files.unlink(f"{directory}/{name}")
    files.sync_dir(directory)
    files.rename(swap_path, segment_path(directory, base_offset, LOG_SUFFIX))
    files.sync_dir(directory)
    log.warning("finished an interrupted compaction at offset %d", base_offset)


def _rename_all(files: Files, directory: str, base_offset: int, old_stage: str, new_stage: str) -> None:
    for suffix in _SUFFIXES:
        path = segment_path(directory, base_offset, suffix)
        if files.exists(path + old_stage):
            files.rename(path + old_stage, path + new_stage)
