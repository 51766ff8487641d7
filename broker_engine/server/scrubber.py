"""Verifying sealed segments from time to time: a bit that rots on disk is found before somebody needs the record.

Slow on purpose, one segment at a time. What does not verify is not served from then on (log.damage), and said loudly;
other replicas have it (mender.py).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence

from broker_engine.errors import BrokerError
from broker_engine.log.damage import Hole
from broker_engine.log.results import LogState
from broker_engine.log.verify import VerifyJob
from broker_engine.server.local_partition import LocalPartition
from broker_engine.server.pacer import Pacer
from broker_engine.server.partitions import Partitions

log = logging.getLogger(__name__)

FIRST_ROUND_AFTER_S = 3600.0
ROUND_INTERVAL_S = 24 * 3600.0
BYTES_PER_S_MAX = 8 << 20


class Scrubber:
    def __init__(
        self,
        partitions: Partitions,
        *,
        bytes_per_s_max: int = BYTES_PER_S_MAX,
        make_pacer: Callable[[int], Pacer] = Pacer,
    ) -> None:
        self.on_damaged: Callable[[LocalPartition], None] = lambda local: None
        self._partitions = partitions
        self._pacer = make_pacer(bytes_per_s_max)
        self.damaged_count = 0
        """Segments that were found damaged since the start."""

    async def run(self) -> None:
        await asyncio.sleep(FIRST_ROUND_AFTER_S)
        while True:
            await self.verify_all()
            await asyncio.sleep(ROUND_INTERVAL_S)

    async def verify_all(self) -> None:
        for local in list(self._partitions.all()):
            for base_offset in local.log.segment_bases[:-1]:
                await self.verify(local, base_offset)

    async def verify(self, local: LocalPartition, base_offset: int) -> None:
        job, holes_before = None, list[Hole]()
        try:
            await local.settled()  # a cut ends soon, the next round begins a day later
            job = None if local.is_retired else local.log.verify_job(base_offset)
            if job is None:
                return
            holes_before = list(job.segment.holes)
            await self._run(local, job)
            local.log.on_verified(job)
        except BrokerError as error:
            log.error("cannot verify %s-%d at offset %d: %s", local.name, local.index, base_offset, error)
        # Even where it could not be noted on disk: it is known now, and would be no news the next time.
        if job is not None and job.segment.holes != holes_before and local.log.state is LogState.DAMAGED:
            self._tell(local, job.segment.holes)

    async def _run(self, local: LocalPartition, job: VerifyJob) -> None:
        try:
            await self._pacer.run(lambda: job.run(self._pacer))
            await local.settled()
        except asyncio.CancelledError:
            job.release()
            raise

    def _tell(self, local: LocalPartition, holes: Sequence[Hole]) -> None:
        self.damaged_count += 1
        lost = ", ".join(f"{hole.start_offset}-{hole.end_offset - 1}" for hole in holes)
        log.critical("%s-%d is damaged on disk: offsets %s cannot be read", local.name, local.index, lost)
        self.on_damaged(local)
