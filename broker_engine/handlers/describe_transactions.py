"""DescribeTransactions (key 65), version 0. An id that is not there answers 105; topics that the caller does not see
(a tenant's `__consumer_offsets`) are left out.
"""

from __future__ import annotations

from broker_engine.errors import BrokerError, ErrorCode
from broker_engine.handlers.api import Api, Call, Scope
from broker_engine.handlers.groups import visible_name
from broker_engine.handlers.transactions import transaction_name
from broker_engine.transactions.transaction import Transaction
from broker_engine.wire.messages.describe_transactions import (
    DescribedTransaction,
    DescribedTransactionTopic,
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
)


def handle(request: DescribeTransactionsRequest, call: Call) -> DescribeTransactionsResponse:
    return DescribeTransactionsResponse(
        transaction_states=[_describe(text, call) for text in dict.fromkeys(request.transactional_ids)]
    )


def refuse(request: DescribeTransactionsRequest, error: BrokerError) -> DescribeTransactionsResponse:
    return DescribeTransactionsResponse(
        transaction_states=[_failed(text, error.code) for text in request.transactional_ids]
    )


def _describe(text: str, call: Call) -> DescribedTransaction:
    try:
        transaction = call.broker.transactions.find(transaction_name(call, text))
    except BrokerError as error:
        return _failed(text, error.code)
    if transaction is None:
        return _failed(text, ErrorCode.TRANSACTIONAL_ID_NOT_FOUND)
    return DescribedTransaction(
        transactional_id=text,
        transaction_state=transaction.state.text,
        transaction_timeout_ms=transaction.timeout_ms,
        transaction_start_time_ms=transaction.started_ms,
        producer_id=transaction.producer_id,
        producer_epoch=transaction.producer_epoch,
        topics=_topics(transaction, call),
    )


def _topics(transaction: Transaction, call: Call) -> list[DescribedTransactionTopic]:
    topics: dict[str, list[int]] = {}
    for topic, index in transaction.partitions:
        name = visible_name(call, topic)
        if name is not None:
            topics.setdefault(name, []).append(index)
    return [DescribedTransactionTopic(topic=name, partitions=indexes) for name, indexes in topics.items()]


def _failed(text: str, code: ErrorCode) -> DescribedTransaction:
    return DescribedTransaction(transactional_id=text, error_code=code)


API = Api(request=DescribeTransactionsRequest, scope=Scope.TRANSACTIONS, handle=handle, refuse=refuse)
