"""EndTxn (key 26), versions 0-5: commit or abort. Answered when the outcome is stored; the markers follow.

From version 5 on by the rules of transaction version 2: the epoch is raised, and the answer says to what. Below version
2 a fenced producer gets 47, not 90.
"""

from __future__ import annotations

from broker_engine.errors import BrokerError
from broker_engine.handlers.api import Api, Call, Scope
from broker_engine.handlers.transactions import code_for, transaction_name
from broker_engine.transactions.transaction import VERSION_2, Producer
from broker_engine.wire.messages.end_txn import EndTxnRequest, EndTxnResponse

_FIRST_VERSION_WITH_FENCED = 2
_FIRST_VERSION_OF_VERSION_2 = 5


async def handle(request: EndTxnRequest, call: Call) -> EndTxnResponse:
    verdict = await call.broker.transactions.end(
        transaction_name(call, request.transactional_id),
        Producer(request.producer_id, request.producer_epoch),
        is_commit=request.committed,
        client_version=VERSION_2 if call.version >= _FIRST_VERSION_OF_VERSION_2 else 0,
    )
    return EndTxnResponse(
        error_code=code_for(verdict.code, call.version, first_version_with_fenced=_FIRST_VERSION_WITH_FENCED),
        producer_id=verdict.producer.id,
        producer_epoch=verdict.producer.epoch,
    )


def refuse(request: EndTxnRequest, error: BrokerError) -> EndTxnResponse:
    return EndTxnResponse(error_code=error.code)


API = Api(request=EndTxnRequest, scope=Scope.TRANSACTIONS, handle=handle, refuse=refuse)
