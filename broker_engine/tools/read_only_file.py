"""A file that can only be read: somebody else's, perhaps in use."""

from __future__ import annotations

import os
from pathlib import Path


class ReadOnlyFile:
    """See log.file_seam.Readable."""

    def __init__(self, path: Path) -> None:
        self._descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        self.size_bytes = os.fstat(self._descriptor).st_size
        """When it was opened: what is appended meanwhile is not looked at."""

    def pread(self, size_bytes: int, position: int) -> bytes:
        return os.pread(self._descriptor, size_bytes, position)

    def close(self) -> None:
        os.close(self._descriptor)
