"""InitProducerId (key 22), versions 0-5. A null transactional id gets a fresh producer id, from any broker; another one
its next epoch, from its coordinator, which fences all earlier ones. Below version 4 a fenced producer gets 47, not 90.
"""

from __future__ import annotations

from collections.abc import Awaitable

from broker_engine.errors import BrokerError, ErrorCode
from broker_engine.handlers.api import Api, Call, Scope
from broker_engine.handlers.transactions import code_for, transaction_name
from broker_engine.transactions.core import InitAsk
from broker_engine.transactions.transaction import Producer
from broker_engine.wire.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse

_UNSET = -1
_FIRST_VERSION_WITH_FENCED = 4


def handle(request: InitProducerIdRequest, call: Call) -> InitProducerIdResponse | Awaitable[InitProducerIdResponse]:
    if (request.producer_id == _UNSET) != (request.producer_epoch == _UNSET):
        raise BrokerError(ErrorCode.INVALID_REQUEST, "producer id and epoch are given together or not at all")
    if request.transactional_id is not None:
        return _init(transaction_name(call, request.transactional_id), request, call)
    producer_id = call.broker.producer_ids.take()
    return _answer_later(call) if producer_id is None else _answer(producer_id)


def refuse(request: InitProducerIdRequest, error: BrokerError) -> InitProducerIdResponse:
    return InitProducerIdResponse(error_code=error.code, producer_epoch=_UNSET)


async def _init(name: str, request: InitProducerIdRequest, call: Call) -> InitProducerIdResponse:
    is_known = request.producer_id != _UNSET
    expected = Producer(request.producer_id, request.producer_epoch) if is_known else None
    verdict = await call.broker.transactions.init_producer_id(InitAsk(name, request.transaction_timeout_ms, expected))
    return InitProducerIdResponse(
        error_code=code_for(verdict.code, call.version, first_version_with_fenced=_FIRST_VERSION_WITH_FENCED),
        producer_id=verdict.producer.id,
        producer_epoch=verdict.producer.epoch,
    )


async def _answer_later(call: Call) -> InitProducerIdResponse:
    return _answer(await call.broker.producer_ids.next())


def _answer(producer_id: int) -> InitProducerIdResponse:
    return InitProducerIdResponse(producer_id=producer_id, producer_epoch=0)


API = Api(request=InitProducerIdRequest, scope=Scope.TRANSACTIONS, handle=handle, refuse=refuse)
