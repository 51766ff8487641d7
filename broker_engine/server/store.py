"""Where a broker keeps its data: files below one directory, the lock on it, the room that is left.

`DiskStore` is the real one; the simulator has its own.
"""

from __future__ import annotations

import fcntl
import os
from pathlib import Path
from typing import NamedTuple, Protocol

from broker_engine.log.files import DiskFiles, Files
from broker_engine.server.open_files import allowed_to_logs

_LOCK = ".lock"


class DiskSpace(NamedTuple):
    total_bytes: int
    free_bytes: int


class Store(Protocol):
    @property
    def files(self) -> Files: ...

    def lock(self) -> None:
        """Held until the process ends, however it ends. BlockingIOError while another holds it."""
        ...

    def unlock(self) -> None: ...

    def space(self) -> DiskSpace: ...


class DiskStore:
    def __init__(self, path: Path) -> None:
        path.mkdir(parents=True, exist_ok=True)
        self._path = path
        self._files = DiskFiles(path, open_files_max=allowed_to_logs())
        self._lock_descriptor = os.open(path / _LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o640)

    @property
    def files(self) -> Files:
        return self._files

    def lock(self) -> None:
        fcntl.flock(self._lock_descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)

    def unlock(self) -> None:
        os.close(self._lock_descriptor)

    def space(self) -> DiskSpace:
        """What this process may still use; root's reserve does not count."""
        found = os.statvfs(self._path)
        return DiskSpace(found.f_frsize * found.f_blocks, found.f_frsize * found.f_bavail)
