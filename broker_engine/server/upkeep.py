"""What a broker does from time to time: retention, flushes of what nobody waits for, checkpoints."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable

from broker_engine.clock import Clock
from broker_engine.config import BrokerConfig
from broker_engine.errors import BrokerError
from broker_engine.log.files import Files
from broker_engine.log.retention import DeletedSegment
from broker_engine.server.checkpoints import HIGH_WATERMARKS, RECOVERY_POINTS, write_checkpoint
from broker_engine.server.complaint import Complaint
from broker_engine.server.local_partition import LocalPartition
from broker_engine.server.log_starts import LogStarts
from broker_engine.server.partitions import Partitions

log = logging.getLogger(__name__)

_PARTITIONS_PER_TURN = 100
"""Then other work of the loop gets its turn."""
_REMOVAL_CHECK_S = 1.0
"""A disk that is low gets its room back within this time, whatever the delay."""


class Upkeep:
    def __init__(
        self,
        partitions: Partitions,
        log_starts: LogStarts,
        files: Files,
        config: BrokerConfig,
        clock: Clock,
        *,
        is_disk_low: Callable[[], bool] = lambda: False,
    ) -> None:
        self._is_disk_low = is_disk_low
        self._partitions = partitions
        self._log_starts = log_starts
        self._files = files
        self._config = config
        self._clock = clock
        self._recovery_points_turn = asyncio.Lock()
        """Two writes at once would mix in one file, and an older state must not replace a newer one."""
        self._asked_count = 0
        self._written_count = 0

    async def run_retention(self) -> None:
        while True:
            await asyncio.sleep(self._config.log_retention_check_interval_ms / 1000)
            await self.apply_retention()

    async def run_removals(self) -> None:
        while True:
            await asyncio.sleep(_REMOVAL_CHECK_S)
            await self.remove_files()

    async def run_high_watermarks(self) -> None:
        complaint = Complaint()
        while True:
            await asyncio.sleep(self._config.replica_high_watermark_checkpoint_interval_ms / 1000)
            await _or_keep_the_old(self.write_high_watermarks(), complaint)

    async def run_recovery_points(self) -> None:
        complaint = Complaint()
        interval_s = self._config.log_flush_offset_checkpoint_interval_ms / 1000
        while interval_s > 0:
            await asyncio.sleep(interval_s)
            for local in list(self._partitions.all()):
                local.request_flush()  # page-cache topics too, so that a crash leaves little to scan
            await _or_keep_the_old(self.write_recovery_points(), complaint)

    async def apply_retention(self) -> None:
        for number, local in enumerate(list(self._partitions.all())):
            if number % _PARTITIONS_PER_TURN == 0:
                await asyncio.sleep(0)
            deleted = self._expired(local)
            if deleted:
                await asyncio.to_thread(_remove, deleted)
        await self.remove_files()

    async def remove_files(self) -> None:
        """Of segments whose delay is over; all that wait where the disk needs the room."""
        due = self._partitions.removals.take(at_once=self._is_disk_low())
        if due:
            await asyncio.to_thread(_remove, due)

    def _expired(self, local: LocalPartition) -> list[DeletedSegment]:
        try:
            return [] if local.is_retired else local.apply_retention(self._clock.now_ms())
        except BrokerError as error:
            log.error("retention of %s-%d failed: %s", local.name, local.index, error)
            return []

    async def write_high_watermarks(self) -> None:
        await asyncio.to_thread(write_checkpoint, self._files, HIGH_WATERMARKS, self._partitions.high_watermarks())

    async def write_recovery_points(self) -> None:
        """Returns once everything that was so before the call is on disk; who waits together shares a write."""
        self._asked_count += 1
        own_number = self._asked_count
        async with self._recovery_points_turn:
            if self._written_count < own_number:
                taken_count = self._asked_count
                await self._write_recovery_points()
                self._written_count = taken_count
        await self._log_starts.write()

    async def _write_recovery_points(self) -> None:
        await asyncio.to_thread(write_checkpoint, self._files, RECOVERY_POINTS, self._partitions.recovery_points())


async def _or_keep_the_old(writing: Awaitable[None], complaint: Complaint) -> None:
    """A checkpoint that cannot be written, for whatever reason, leaves the one before: never wrong, only older. The
    next round tries again."""
    try:
        await writing
    except OSError as error:
        if complaint.is_news(str(error)):
            log.warning("a checkpoint was not written: %s", error)
    else:
        complaint.settle()


def _remove(deleted: Iterable[DeletedSegment]) -> None:
    for segment in deleted:
        try:
            segment.remove()
        except OSError as error:  # one that cannot be removed must not keep the others; a restart tries again
            log.error("the files of a deleted segment stay: %s", error)
