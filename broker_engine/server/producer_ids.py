"""Producer ids for idempotent producers: handed out from blocks of a thousand that the controller gives to this
broker.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from broker_engine.client.errors import ConnectionFailed
from broker_engine.errors import BrokerError, ErrorCode
from broker_engine.server.controller_channel import ControllerChannel
from broker_engine.wire.messages.allocate_producer_ids import (
    AllocateProducerIdsRequest,
    AllocateProducerIdsResponse,
)

_TIMEOUT_MS = 10_000


class ProducerIds:
    def __init__(self, controller: ControllerChannel, node_id: int, broker_epoch: Callable[[], int]) -> None:
        self._controller = controller
        self._node_id = node_id
        self._broker_epoch = broker_epoch
        self._next = self._end = 0
        self._refilling = asyncio.Lock()

    def take(self) -> int | None:
        """The next id, or None where the block is used up: then `next` gets another."""
        if self._next == self._end:
            return None
        self._next += 1
        return self._next - 1

    async def next(self) -> int:
        """BrokerError where no controller gives a block; the producer asks again."""
        async with self._refilling:
            producer_id = self.take()
            while producer_id is None:
                await self._refill()
                producer_id = self.take()
            return producer_id

    async def _refill(self) -> None:
        request = AllocateProducerIdsRequest(broker_id=self._node_id, broker_epoch=self._broker_epoch())
        try:
            block = await self._controller.ask(request, AllocateProducerIdsResponse, timeout_ms=_TIMEOUT_MS)
        except ConnectionFailed as error:
            raise BrokerError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, error.message) from error
        if block.error_code != ErrorCode.NONE:
            raise BrokerError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode(block.error_code).name)
        self._next, self._end = block.producer_id_start, block.producer_id_start + block.producer_id_len
