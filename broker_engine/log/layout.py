"""Making a partition's directory, its first files, and telling whose it is."""

from __future__ import annotations

from uuid import UUID

from broker_engine.errors import BrokerError, ErrorCode
from broker_engine.log.checkpoints import METADATA_FILE, format_partition_metadata, parse_partition_metadata
from broker_engine.log.file_seam import Files
from broker_engine.log.segment import LOG_SUFFIX, Segment, segment_path


def make_partition_dir(files: Files, directory: str, *, was_durable: bool) -> list[str]:
    """Answers the directories that need a sync before anything inside is durable: those in which names are new.

    Where nothing inside is known to be durable, that may be any: who made them may have died before the sync.
    """
    files.make_dirs(directory)
    return [] if was_durable else [directory, *parents_of(directory)]


def parents_of(directory: str) -> list[str]:
    """From the nearest to the root, whose name is empty."""
    found = []
    while directory:
        directory = directory.rpartition("/")[0]
        found.append(directory)
    return found


def check_topic_id(files: Files, directory: str, topic_id: UUID) -> None:
    """A directory of another topic that once had this name must not be opened as this one."""
    path = f"{directory}/{METADATA_FILE}"
    data = files.read_small(path) if files.exists(path) else b""
    if data == format_partition_metadata(topic_id):
        return  # as almost always: nothing has to be parsed
    known = parse_partition_metadata(data)
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
