"""Producer ids for idempotent producers: handed out from blocks of a thousand that the metadata log gives to this
broker.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from broker_engine.metadata.controller import ProducerIdBlock, allocate_producer_ids

if TYPE_CHECKING:
    from broker_engine.server.metadata_driver import MetadataDriver


class ProducerIds:
    def __init__(self, metadata: MetadataDriver, node_id: int) -> None:
        self._metadata = metadata
        self._node_id = node_id
        self._next = self._end = 0
        self._refilling = asyncio.Lock()

    def take(self) -> int | None:
        """The next id, or None where the block is used up: then `next` gets another."""
        if self._next == self._end:
            return None
        self._next += 1
        return self._next - 1

    async def next(self) -> int:
        async with self._refilling:
            producer_id = self.take()
            while producer_id is None:
                await self._refill()
                producer_id = self.take()
            return producer_id

    async def _refill(self) -> None:
        epoch = self._metadata.image.brokers[self._node_id].epoch
        results: tuple[ProducerIdBlock, ...] = await self._metadata.commit(
            lambda image: allocate_producer_ids(image, broker_id=self._node_id, broker_epoch=epoch)
        )
        (block,) = results
        self._next, self._end = block.first, block.first + block.count
