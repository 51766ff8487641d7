"""ListTransactions (key 66), versions 0-2: what this broker coordinates, of the caller's own. A pattern (RE2) must fit
the whole id as the caller sees it; one that is none answers 128.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

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


async def handle(request: ListTransactionsRequest, call: Call) -> ListTransactionsResponse:
    states, producer_ids = frozenset(request.state_filters), frozenset(request.producer_id_filters)
    wanted = {
        name: each
        for each in call.broker.transactions.all()
        if (not states or each.state.text in states)
        and (not producer_ids or each.producer_id in producer_ids)
        and _is_old_enough(each, request.duration_filter, call)
        and (name := visible_name(call, each.transactional_id)) is not None
    }
    pattern = request.transactional_id_pattern
    names = await _matching(pattern, list(wanted), call) if pattern else wanted
    listed = [_listed(name, wanted[name]) for name in names]
    unknown = [text for text in request.state_filters if text not in BY_TEXT]
    return ListTransactionsResponse(unknown_state_filters=unknown, transaction_states=listed)


def refuse(request: ListTransactionsRequest, error: BrokerError) -> ListTransactionsResponse:
    return ListTransactionsResponse(error_code=error.code)


async def _matching(pattern: str, names: Sequence[str], call: Call) -> list[str]:
    """In a thread: a hostile pattern may need long."""
    return await asyncio.get_running_loop().run_in_executor(call.broker.pattern_threads, matching, pattern, names)


def _is_old_enough(transaction: Transaction, open_for_ms: int, call: Call) -> bool:
    return open_for_ms < 0 or call.broker.transactions.open_for_ms(transaction) > open_for_ms


def _listed(name: str, transaction: Transaction) -> ListedTransaction:
    return ListedTransaction(
        transactional_id=name, producer_id=transaction.producer_id, transaction_state=transaction.state.text
    )


API = Api(request=ListTransactionsRequest, scope=Scope.TRANSACTIONS, handle=handle, refuse=refuse)
