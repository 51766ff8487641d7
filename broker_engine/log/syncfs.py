"""One `syncfs`: everything that was written to a file system is on its disk. Linux, by the C library.

Since Linux 5.8 it tells of errors, to each descriptor that was open when they happened; before that it says that all is
well whatever happened, so that nobody may rely on it.
"""

from __future__ import annotations

import ctypes
import os
import platform
from pathlib import Path

_MOUNTS = Path("/proc/self/mountinfo")
_TELLS_ERRORS_SINCE = (5, 8)
_NOT_OURS_BUT_HARMLESS = {"lost+found"}


def syncfs(descriptor: int) -> None:
    """Blocks, without the GIL, for the file system that the descriptor is on."""
    library = ctypes.CDLL(None, use_errno=True)
    if library.syncfs(descriptor) != 0:
        error = ctypes.get_errno()
        raise OSError(error, os.strerror(error))


def has_to_itself(root: Path, mounts: Path = _MOUNTS) -> bool:
    """Whether a syncfs of `root` writes what is below it and nothing else, and tells how that went."""
    return _tells_errors() and _is_alone(root.resolve(), _whole_file_systems(mounts))


def _tells_errors() -> bool:
    if platform.system() != "Linux":
        return False
    major, minor = platform.release().split(".")[:2]
    return (int(major), int(minor)) >= _TELLS_ERRORS_SINCE


def _is_alone(path: Path, mounts: set[str]) -> bool:
    """A whole file system is mounted on `path`, or on one of its parents with nothing beside it on the way."""
    while str(path) not in mounts:
        beside = {entry.name for entry in os.scandir(path.parent)} - {path.name}
        if path == path.parent or beside - _NOT_OURS_BUT_HARMLESS:
            return False
        path = path.parent
    return path != path.parent


def _whole_file_systems(mounts: Path) -> set[str]:
    """Where file systems are mounted from their root on. A bind mount shows a part of one that others use too."""
    if not mounts.exists():
        return set()
    lines = [line.split(" ") for line in mounts.read_text().splitlines()]
    return {fields[4].encode().decode("unicode_escape") for fields in lines if fields[3] == "/"}
