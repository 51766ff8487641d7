"""AllocateProducerIds (key 67), version 0: a broker takes a block of ids that nobody else ever gets."""

from __future__ import annotations

from broker_engine.errors import BrokerError
from broker_engine.handlers.api import Api, Call, Scope
from broker_engine.metadata.controller import allocate_producer_ids
from broker_engine.wire.messages.allocate_producer_ids import (
    AllocateProducerIdsRequest,
    AllocateProducerIdsResponse,
)


async def handle(request: AllocateProducerIdsRequest, call: Call) -> AllocateProducerIdsResponse:
    (block,) = await call.broker.metadata.commit(
        lambda image: allocate_producer_ids(image, broker_id=request.broker_id, broker_epoch=request.broker_epoch)
    )
    return AllocateProducerIdsResponse(producer_id_start=block.first, producer_id_len=block.count)


def refuse(request: AllocateProducerIdsRequest, error: BrokerError) -> AllocateProducerIdsResponse:
    return AllocateProducerIdsResponse(error_code=error.code)


API = Api(request=AllocateProducerIdsRequest, scope=Scope.BROKERS, handle=handle, refuse=refuse)
