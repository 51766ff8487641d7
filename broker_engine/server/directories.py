"""Tidying the data directory at start: deletions that a crash cut short are finished, what nobody knows is set aside.

A directory whose topic the metadata does not know is never deleted: it is renamed to `-stray`, for a person to look at.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator

from broker_engine.clock import Randomness
from broker_engine.log.files import Files
from broker_engine.log.segment import LOG_SUFFIX
from broker_engine.log.swap import SWAP_SUFFIX
from broker_engine.metadata.image import MetadataImage
from broker_engine.names import (
    CLUSTER_METADATA,
    TENANTS_DIRECTORY,
    directory,
    is_deleted_directory,
    parse_directory,
    stray_directory,
)
from broker_engine.server.checkpoints import RECOVERY_POINTS, read_checkpoint

log = logging.getLogger(__name__)

_TEMPORARY_SUFFIX = ".tmp"
"""Of a checkpoint that a crash cut short."""


def remove_leftovers(files: Files) -> None:
    """Blocks. To be called before anybody writes a checkpoint: later on such a file may be one on its way."""
    for name in files.list_dir(""):
        if name.endswith(_TEMPORARY_SUFFIX):
            files.unlink(name)


def find_vanished(files: Files) -> list[str]:
    """Blocks. Directories that had records on disk when the recovery points were written last, and have no log now.

    After a clean stop that is a loss: whoever removes a topic writes the recovery points anew without it.
    """
    present = set(_directories(files))
    points = read_checkpoint(files, RECOVERY_POINTS)
    paths = (directory(name, partition) for (name, partition), offset in points.items() if offset > 0)
    return [path for path in paths if path not in present or not _has_segment(files, path)]


def _has_segment(files: Files, path: str) -> bool:
    """A cleaned one that is about to take its place counts: opening the log finishes that."""
    return any(name.endswith((LOG_SUFFIX, LOG_SUFFIX + SWAP_SUFFIX)) for name in files.list_dir(path))


def tidy(files: Files, image: MetadataImage, randomness: Randomness) -> None:
    """Blocks. To be called before any log is opened."""
    for path in list(_directories(files)):
        if is_deleted_directory(path):
            _remove(files, path)
            continue
        found = parse_directory(path)
        if found is None or (found.name.is_root and found.name.name == CLUSTER_METADATA):
            continue
        topic = image.topic(found.name)
        if topic is None or found.partition not in topic.partitions:
            aside = stray_directory(found.name, found.partition, randomness.uuid().hex)
            log.warning("%s belongs to no known topic: kept as %s", path, aside)
            files.rename(path, aside)


def _directories(files: Files) -> Iterator[str]:
    yield from files.list_dir("")
    if not files.exists(TENANTS_DIRECTORY):
        return
    for tenant in files.list_dir(TENANTS_DIRECTORY):
        for name in files.list_dir(f"{TENANTS_DIRECTORY}/{tenant}"):
            yield f"{TENANTS_DIRECTORY}/{tenant}/{name}"


def _remove(files: Files, path: str) -> None:
    for name in files.list_dir(path):
        files.unlink(f"{path}/{name}")
    files.remove_dir(path)
