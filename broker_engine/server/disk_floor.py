"""Keeps a part of the disk free: below the floor records are refused, while reads and deletes go on.

What stays free is the room that deleting takes: metadata records, checkpoints, indexes. Writes are taken again as soon
as there is room, without a restart.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

from broker_engine.errors import BrokerError, ErrorCode
from broker_engine.server.store import DiskSpace

log = logging.getLogger(__name__)

CHECK_INTERVAL_S = 1.0
FLOOR_BYTES_DEFAULT = 1 << 30
FLOOR_PART_DEFAULT = 20
"""One part in so many of the file system: 5 %."""
_SLACK_PART = 20
"""Writes begin again a twentieth above the floor, so that they do not stop and go."""


class DiskFloor:
    def __init__(self, floor_bytes: int | None, measure_space: Callable[[], DiskSpace]) -> None:
        """`floor_bytes`: None = by the size of the file system, 0 = no floor."""
        self._floor_bytes = floor_bytes
        self._measure_space = measure_space
        self.free_bytes = -1
        self.total_bytes = -1
        self.is_low = False

    def check_writable(self) -> None:
        if self.is_low:
            text = f"the disk is nearly full ({self.free_bytes} bytes free): delete something, or give it room"
            raise BrokerError(ErrorCode.KAFKA_STORAGE_ERROR, text)

    async def run(self) -> None:
        while True:
            await asyncio.sleep(CHECK_INTERVAL_S)
            self.update(await asyncio.to_thread(self._measure_space))

    def look(self) -> None:
        """Blocks, shortly: for the start."""
        self.update(self._measure_space())

    def update(self, space: DiskSpace) -> None:
        self.free_bytes, self.total_bytes = space.free_bytes, space.total_bytes
        floor_bytes = floor_of(space, self._floor_bytes)
        if not self.is_low and space.free_bytes < floor_bytes:
            self.is_low = True
            log.error("%d bytes free on disk, the floor is %d: records are refused", space.free_bytes, floor_bytes)
        elif self.is_low and space.free_bytes >= floor_bytes + floor_bytes // _SLACK_PART:
            self.is_low = False
            log.warning("%d bytes free on disk: records are taken again", space.free_bytes)


def floor_of(space: DiskSpace, floor_bytes: int | None) -> int:
    if floor_bytes is not None:
        return floor_bytes
    # The smaller of the two: 5 % of a developer's large and well-filled disk would refuse the very first record.
    return min(FLOOR_BYTES_DEFAULT, space.total_bytes // FLOOR_PART_DEFAULT)
