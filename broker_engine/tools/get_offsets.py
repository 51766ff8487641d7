"""`get-offsets`: log start, high watermark and log end of the partitions in a data directory, from its files alone.

Beside a running broker the high watermark and the log start are as old as the last checkpoint (some seconds).
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from broker_engine.log.disk_files import DiskFiles
from broker_engine.log.scan import scan_batches
from broker_engine.log.segment import LOG_SUFFIX
from broker_engine.names import TENANTS_DIRECTORY, parse_directory, physical
from broker_engine.server.checkpoints import HIGH_WATERMARKS, LOG_STARTS, TopicPartition, read_checkpoint
from broker_engine.tools.read_only_file import ReadOnlyFile

UNKNOWN = -1


class PartitionOffsets(NamedTuple):
    topic: str
    partition: int
    log_start_offset: int
    high_watermark: int
    """-1 where no checkpoint tells."""
    log_end_offset: int


def get_offsets(data_dir: Path, topic: str | None = None) -> Iterator[PartitionOffsets]:
    """One per partition, sorted; only those of one topic (by its physical name) if one is given."""
    files = DiskFiles(data_dir)
    starts, watermarks = read_checkpoint(files, LOG_STARTS), read_checkpoint(files, HIGH_WATERMARKS)
    for (name, partition), folder in sorted(_partition_folders(data_dir)):
        bases = sorted(int(path.stem) for path in folder.glob(f"*{LOG_SUFFIX}") if path.stem.isdecimal())
        if bases and topic in {None, physical(name)}:
            key = (name, partition)
            yield PartitionOffsets(
                physical(name),
                partition,
                max(bases[0], starts.get(key, 0)),
                watermarks.get(key, UNKNOWN),
                _end_offset(folder, bases[-1]),
            )


def _partition_folders(data_dir: Path) -> Iterator[tuple[TopicPartition, Path]]:
    tenants = data_dir / TENANTS_DIRECTORY
    roots = [data_dir, *(tenants.iterdir() if tenants.is_dir() else ())]
    for folder in (folder for root in roots for folder in root.iterdir() if folder.is_dir()):
        found = parse_directory(str(folder.relative_to(data_dir)))
        if found is not None:
            yield (found.name, found.partition), folder


def _end_offset(folder: Path, base_offset: int) -> int:
    """By the batches of the last segment: a tail that is just being written is not counted."""
    handle = ReadOnlyFile(folder / f"{base_offset:020d}{LOG_SUFFIX}")
    end_offset = base_offset
    for batch in scan_batches(handle, 0):
        end_offset = batch.header.next_offset
    handle.close()
    return end_offset
