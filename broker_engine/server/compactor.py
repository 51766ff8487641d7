"""Compaction of the broker's logs: one at a time, in a thread, at a bounded rate, so that produces hardly notice.

A log that cannot be compacted (a batch that does not decode, damage) is named in the log lines, counted, and skipped
until it is reopened; the others go on. How far each log is clean is kept in Kafka's `cleaner-offset-checkpoint`.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

from broker_engine.clock import Clock
from broker_engine.config import BrokerConfig
from broker_engine.errors import BrokerError
from broker_engine.log.compaction import Cleaning, CompactionJob
from broker_engine.log.files import Files
from broker_engine.server.checkpoints import TopicPartition, read_checkpoint, write_checkpoint
from broker_engine.server.local_partition import LocalPartition
from broker_engine.server.pacer import Pacer
from broker_engine.server.partitions import Partitions

log = logging.getLogger(__name__)

CLEANER_OFFSETS = "cleaner-offset-checkpoint"
_RATE = "log.cleaner.io.max.bytes.per.second"


class Compactor:
    def __init__(
        self,
        partitions: Partitions,
        files: Files,
        clock: Clock,
        config: BrokerConfig,
        *,
        make_pacer: Callable[[int], Pacer] = Pacer,
    ) -> None:
        self._partitions = partitions
        self._files = files
        self._clock = clock
        self._config = config
        self._make_pacer = make_pacer
        self._saved = read_checkpoint(files, CLEANER_OFFSETS)
        self.run_count = 0
        self.uncleanable_count = 0
        """Logs that were found impossible to compact since the start."""

    async def run(self) -> None:
        while True:
            await asyncio.sleep(self._config.log_cleaner_backoff_ms / 1000)
            await self.compact_all()

    async def compact_all(self) -> None:
        """Every log that is due, once."""
        compacted = [local for local in list(self._partitions.all()) if await self._compact(local)]
        if compacted:
            await asyncio.to_thread(write_checkpoint, self._files, CLEANER_OFFSETS, self._clean_ends())

    def _clean_ends(self) -> list[tuple[TopicPartition, int]]:
        cleaned = (local for local in self._partitions.all() if local.log.clean_end_offset)
        return [((local.name, local.index), local.log.clean_end_offset) for local in cleaned]

    async def _compact(self, local: LocalPartition) -> bool:
        """True if it was due. Never raises for what is wrong with one log."""
        try:
            job = None if local.is_retired or local.busy is not None else self._due(local)
            if job is not None:
                await self._carry_out(local, job)
        except BrokerError as error:
            log.error("compaction of %s-%d failed: %s", local.name, local.index, error)
            return False
        return job is not None

    def _due(self, local: LocalPartition) -> CompactionJob | None:
        saved_offset = self._saved.pop((local.name, local.index), 0)
        if local.log.clean_end_offset == 0 and saved_offset <= local.log.log_end_offset:
            local.log.clean_end_offset = saved_offset
        # Only what is on disk: a merged copy that outlives its unsynced sources would look like damage after a crash.
        return local.log.compaction_job(
            limit_offset=self._limit(local),
            last_batches=local.core.producers.last_batches,
            now_ms=self._clock.now_ms(),
        )

    def _limit(self, local: LocalPartition) -> int:
        """Where markers that are not on disk hold sealed segments back, they will be next time."""
        durable_offset = local.log.durable_end_offset
        limit = min(local.core.cleanable_offset, durable_offset)
        is_held_back = limit < min(local.core.last_stable_offset, durable_offset, local.log.segment_bases[-1])
        if is_held_back and local.log.config.is_compacting:
            local.request_flush()
        return limit

    async def _carry_out(self, local: LocalPartition, job: CompactionJob) -> None:
        self.run_count += 1
        pacer = self._make_pacer(self._bytes_per_s_max())
        try:
            await pacer.run(lambda: job.prepare(pacer))
            for cleaning in job.cleanings():
                await self._clean(local, cleaning, pacer)
        finally:
            local.log.end_compaction(job)
        if job.problem:
            self.uncleanable_count += 1
            log.error("%s-%d cannot be compacted and is left alone: %s", local.name, local.index, job.problem)

    def _bytes_per_s_max(self) -> int:
        """Asked for each log anew: it may be changed while the broker runs."""
        return self._partitions.broker_setting(_RATE, int(self._config.log_cleaner_io_max_bytes_per_second))

    async def _clean(self, local: LocalPartition, cleaning: Cleaning, pacer: Pacer) -> None:
        await pacer.run(lambda: cleaning.clean(pacer))
        await local.settled()
        deleted = local.log.swap_in(cleaning)
        if deleted is None:
            await pacer.run(cleaning.discard)
            return
        try:
            await pacer.run(cleaning.finish)
        finally:
            local.log.settle(cleaning)
        for segment in deleted:
            await asyncio.to_thread(segment.remove)
