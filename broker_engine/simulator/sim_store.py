"""A node's data directory on a SimDisk: locked by one process at a time, with as much room as the disk has."""

from __future__ import annotations

import errno

from broker_engine.server.store import DiskSpace
from broker_engine.simulator.sim_disk import SimDisk

UNLIMITED_BYTES = 1 << 40


class SimStore:
    """See Store. One per life of a process."""

    def __init__(self, disk: SimDisk) -> None:
        self._disk = disk
        self._generation = disk.generation

    @property
    def files(self) -> SimDisk:
        return self._disk

    def lock(self) -> None:
        if self._disk.locked_by == self._disk.generation:
            raise BlockingIOError(errno.EWOULDBLOCK, "another process has the lock")
        self._disk.locked_by = self._disk.generation

    def unlock(self) -> None:
        if self._generation == self._disk.generation:
            self._disk.locked_by = None

    def space(self) -> DiskSpace:
        capacity = self._disk.faults.capacity_bytes
        if capacity is None:
            return DiskSpace(UNLIMITED_BYTES, UNLIMITED_BYTES)
        return DiskSpace(capacity, max(0, capacity - sum(self._disk.used_bytes())))
