"""The checkpoint of log start offsets, brought to the disk when somebody was promised that records are gone."""

from __future__ import annotations

import asyncio

from broker_engine.log.files import Files
from broker_engine.server.checkpoints import LOG_STARTS, write_checkpoint
from broker_engine.server.partitions import Partitions


class LogStarts:
    """One write at a time, so that an older state never replaces a newer one; who waits together shares a write."""

    def __init__(self, partitions: Partitions, files: Files) -> None:
        self._partitions = partitions
        self._files = files
        self._turn = asyncio.Lock()
        self._asked_count = 0
        self._written_count = 0

    async def write(self) -> None:
        """Returns once every log start of before the call is on disk."""
        self._asked_count += 1
        own_number = self._asked_count
        async with self._turn:
            if self._written_count >= own_number:
                return
            taken_count = self._asked_count
            await asyncio.to_thread(write_checkpoint, self._files, LOG_STARTS, self._partitions.log_starts())
            self._written_count = taken_count
