"""Makes a snapshot of the image after so many bytes of log, or so much time, and lets go of the log below the older
one of two.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence

from broker_engine.clock import Clock
from broker_engine.metadata.image import MetadataImage
from broker_engine.quorum.log_index import LogPosition
from broker_engine.quorum.ready import Entry, LogShortened
from broker_engine.server.metadata_snapshots import KEPT_COUNT, encode_snapshot
from broker_engine.server.raft_node import RaftNode
from broker_engine.server.supervisor import Supervisor

log = logging.getLogger(__name__)


class SnapshotMaker:
    def __init__(self, node: RaftNode, clock: Clock, *, bytes_between: int, interval_ms: int) -> None:
        self._node = node
        self._clock = clock
        self._bytes_between = bytes_between
        self._interval_ms = interval_ms
        self._bytes = 0
        self._made_ms = clock.monotonic_ms()
        self._making: asyncio.Task[None] | None = None
        self._tasks = Supervisor()

    async def stop(self) -> None:
        await self._tasks.stop()

    def on_applied(self, image: MetadataImage, applied_offset: int, entries: Sequence[Entry]) -> None:
        self._bytes += sum(sum(map(len, entry.values)) for entry in entries)
        if self._is_due and (self._making is None or self._making.done()):
            self._bytes, self._made_ms = 0, self._clock.monotonic_ms()
            position = LogPosition(self._node.core.log.epoch_before(applied_offset), applied_offset)
            self._making = self._tasks.spawn(self._make(image, position), "metadata snapshot")

    @property
    def _is_due(self) -> bool:
        is_old = 0 < self._interval_ms <= self._clock.monotonic_ms() - self._made_ms
        return self._bytes >= self._bytes_between or (is_old and self._bytes > 0)

    async def _make(self, image: MetadataImage, position: LogPosition) -> None:
        snapshots = self._node.snapshots
        data = await asyncio.to_thread(encode_snapshot, image, self._clock.now_ms())
        await asyncio.to_thread(snapshots.write, position, data)
        await asyncio.to_thread(snapshots.remove_old)
        log.info("snapshot of the metadata at offset %d: %d bytes", position.end_offset, len(data))
        await self._node.roll()
        await self._shorten(await asyncio.to_thread(snapshots.positions))

    async def _shorten(self, positions: list[LogPosition]) -> None:
        """Below the older one: should the newer turn out damaged, the older and the log still say everything."""
        index = self._node.core.log
        if len(positions) < KEPT_COUNT or not index.start_offset < positions[-1].end_offset <= index.end_offset:
            return
        await self._node.step(LogShortened(positions[-1]))
        await self._node.let_go_below(positions[-1].end_offset)
