"""InitProducerId (key 22), versions 0-5, for idempotent producers: a null transactional id gets a fresh producer id.

Left out: transactions. A transactional id is answered COORDINATOR_NOT_AVAILABLE (15): every client takes that for a
coordinator that is not there yet, tries again and gives up with a time-out that names it; no client sees it as a bug
of its own.
"""

from __future__ import annotations

from collections.abc import Awaitable

from broker_engine.errors import BrokerError, ErrorCode
from broker_engine.handlers.api import Api, Call, Scope
from broker_engine.wire.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse

_UNSET = -1


def handle(request: InitProducerIdRequest, call: Call) -> InitProducerIdResponse | Awaitable[InitProducerIdResponse]:
    if request.transactional_id is not None:
        code = ErrorCode.COORDINATOR_NOT_AVAILABLE if request.transactional_id else ErrorCode.INVALID_REQUEST
        raise BrokerError(code, "this broker has no transactions yet")
    if (request.producer_id == _UNSET) != (request.producer_epoch == _UNSET):
        raise BrokerError(ErrorCode.INVALID_REQUEST, "producer id and epoch are given together or not at all")
    producer_id = call.broker.producer_ids.take()
    return _answer_later(call) if producer_id is None else _answer(producer_id)


def refuse(request: InitProducerIdRequest, error: BrokerError) -> InitProducerIdResponse:
    return InitProducerIdResponse(error_code=error.code, producer_epoch=_UNSET)


async def _answer_later(call: Call) -> InitProducerIdResponse:
    return _answer(await call.broker.producer_ids.next())


def _answer(producer_id: int) -> InitProducerIdResponse:
    return InitProducerIdResponse(producer_id=producer_id, producer_epoch=0)


API = Api(request=InitProducerIdRequest, scope=Scope.NAMELESS, handle=handle, refuse=refuse)
