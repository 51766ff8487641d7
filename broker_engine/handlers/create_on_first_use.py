"""CreateOnFirstUse (key 10005, private), version 0: a broker's client named topics that are not there; by the tenants'
policies the controller may make them.
"""

from __future__ import annotations

from broker_engine.errors import BrokerError
from broker_engine.handlers.api import Api, Call, Scope
from broker_engine.metadata.controller import create_on_first_use
from broker_engine.names import Name
from broker_engine.wire.messages.internal_create_on_first_use import (
    CreateOnFirstUseRequest,
    CreateOnFirstUseResponse,
    CreateOnFirstUseResult,
)


async def handle(request: CreateOnFirstUseRequest, call: Call) -> CreateOnFirstUseResponse:
    broker = call.broker
    names = [Name(topic.tenant, topic.name) for topic in request.topics]
    results = await broker.metadata.commit(
        lambda image: create_on_first_use(image, names, config=broker.config, new_id=broker.randomness.uuid)
    )
    return CreateOnFirstUseResponse(
        metadata_offset=broker.image.next_offset,
        results=[
            CreateOnFirstUseResult(
                tenant=name.tenant,
                name=name.name,
                error_code=result.error_code,
                error_message=result.error_message,
            )
            for name, result in zip(names, results, strict=True)
        ],
    )


def refuse(request: CreateOnFirstUseRequest, error: BrokerError) -> CreateOnFirstUseResponse:
    return CreateOnFirstUseResponse(error_code=error.code)


API = Api(request=CreateOnFirstUseRequest, scope=Scope.BROKERS, handle=handle, refuse=refuse)
