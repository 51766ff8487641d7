"""DescribeTransactions (key 65), version 0."""

from __future__ import annotations

from broker_engine.wire.api import declare
from broker_engine.wire.kinds import Array, Int16, Int32, Int64, String
from broker_engine.wire.schema import Message, Struct


class DescribeTransactionsRequest(Message, versions="0", flexible="0+"):
    transactional_ids: Array[String] = ()


class DescribedTransactionTopic(Struct):
    topic: String = ""
    partitions: Array[Int32] = ()


class DescribedTransaction(Struct):
    error_code: Int16 = 0
    transactional_id: String = ""
    transaction_state: String = ""
    transaction_timeout_ms: Int32 = 0
    transaction_start_time_ms: Int64 = 0
    producer_id: Int64 = 0
    producer_epoch: Int16 = 0
    topics: Array[DescribedTransactionTopic] = ()


class DescribeTransactionsResponse(Message, versions="0", flexible="0+"):
    throttle_time_ms: Int32 = 0
    transaction_states: Array[DescribedTransaction] = ()


API = declare(65, "DescribeTransactions", DescribeTransactionsRequest, DescribeTransactionsResponse)
