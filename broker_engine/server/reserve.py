"""Room that is kept for the metadata: a file that is given up when the disk is full, and made again when it is not.

Whatever fills the disk, topics can be deleted, leaders elected and votes given: that is what frees it again (F12).
"""

from __future__ import annotations

import logging

from broker_engine.log.files import Files

log = logging.getLogger(__name__)

PATH = "metadata-reserve"
SIZE_BYTES = 256 * 1024


class Reserve:
    def __init__(self, files: Files, *, size_bytes: int = SIZE_BYTES) -> None:
        self._files = files
        self._size_bytes = size_bytes
        self.is_there = files.exists(PATH)

    def refill(self) -> None:
        """Blocks. Where there is no room for it, there is none."""
        if self.is_there:
            return
        try:
            self._files.write_atomic(PATH, bytes(self._size_bytes), is_durable=True)
        except OSError as error:
            log.info("no room is kept for the metadata: %s", error.strerror)
        else:
            self.is_there = True

    def release(self) -> bool:
        """True if there is more room now than before."""
        if not self.is_there:
            return False
        self.is_there = False
        self._files.unlink(PATH)
        log.error("the disk is full: the metadata goes on in the room that was kept for it")
        return True
