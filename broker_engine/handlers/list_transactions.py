"""ListTransactions (key 66), versions 0-2: what this broker coordinates, of the caller's own. A pattern (RE2) must fit
the whole id as the caller sees it; one that is none answers 128.
"""

from __future__ import annotations

from broker_engine.errors import BrokerError
from broker_engine.groups.consumer.regex import matching
from broker_engine.handlers.api import Api, Call, Scope
from broker_engine.handlers.groups import visible_name
from broker_engine.transactions.states import BY_TEXT
from broker_engine.transactions.transaction import Transaction
from broker_engine.wire.messages.list_transactions import (
    ListedTransaction,
    ListTransactionsRequest,
    ListTransactionsResponse,
)


def handle(request: ListTransactionsRequest, call: Call) -> ListTransactionsResponse:
    wanted = {}
    for transaction in call.broker.transactions.all():
        name = visible_name(call, transaction.transactional_id)
        if name is not None and _is_wanted(transaction, request, call):
            wanted[name] = transaction
    pattern = request.transactional_id_pattern
    listed = [_listed(name, wanted[name]) for name in (matching(pattern, wanted) if pattern else wanted)]
    unknown = [text for text in request.state_filters if text not in BY_TEXT]
    return ListTransactionsResponse(unknown_state_filters=unknown, transaction_states=listed)


def refuse(request: ListTransactionsRequest, error: BrokerError) -> ListTransactionsResponse:
    return ListTransactionsResponse(error_code=error.code)


def _is_wanted(transaction: Transaction, request: ListTransactionsRequest, call: Call) -> bool:
    if request.state_filters and transaction.state.text not in request.state_filters:
        return False
    if request.producer_id_filters and transaction.producer_id not in request.producer_id_filters:
        return False
    age_ms = call.broker.transactions.open_for_ms(transaction)
    return request.duration_filter < 0 or age_ms > request.duration_filter


def _listed(name: str, transaction: Transaction) -> ListedTransaction:
    return ListedTransaction(
        transactional_id=name, producer_id=transaction.producer_id, transaction_state=transaction.state.text
    )


API = Api(request=ListTransactionsRequest, scope=Scope.TRANSACTIONS, handle=handle, refuse=refuse)
