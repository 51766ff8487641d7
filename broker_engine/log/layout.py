"""Making a partition's directory, its first files, and telling whose it is."""

from __future__ import annotations

from uuid import UUID

from broker_engine.errors import BrokerError, ErrorCode
from broker_engine.log.checkpoints import METADATA_FILE, format_partition_metadata, parse_partition_metadata
from broker_engine.log.file_seam import Files
from broker_engine.log.segment import LOG_SUFFIX, Segment, segment_path


def make_partition_dir(files: Files, directory: str) -> list[str]:
    """Answers the directories in which new names appeared: they need a sync before anything inside is durable."""
    changed = []
    path = directory
    while path and not files.exists(path):
        path = path.rpartition("/")[0]
        changed.append(path)
    files.make_dirs(directory)
    return changed


def check_topic_id(files: Files, directory: str, topic_id: UUID) -> None:
    """A directory of another topic that once had this name must not be opened as this one."""
    path = f"{directory}/{METADATA_FILE}"
    known = parse_partition_metadata(files.read_small(path)) if files.exists(path) else None
    if known is None:
        files.write_atomic(path, format_partition_metadata(topic_id), is_durable=False)
    elif known != topic_id:
        raise BrokerError(ErrorCode.INCONSISTENT_TOPIC_ID, "the directory belongs to a topic of another id")


def create_segment(files: Files, directory: str, base_offset: int, now_ms: int) -> Segment:
    handle = files.open(segment_path(directory, base_offset, LOG_SUFFIX), create=True)
    return Segment(files, directory, base_offset, handle, created_ms=now_ms)


def remove_partition_dir(files: Files, directory: str) -> None:
    for name in files.list_dir(directory):
        files.unlink(f"{directory}/{name}")
    files.remove_dir(directory)
