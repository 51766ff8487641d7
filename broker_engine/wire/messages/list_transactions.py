"""ListTransactions (key 66), versions 0-2: by state and producer id, from v1 by age, from v2 by a pattern of the id."""

from __future__ import annotations

from broker_engine.wire.api import declare
from broker_engine.wire.kinds import Array, Int16, Int32, Int64, String
from broker_engine.wire.schema import Message, Struct, field


class ListTransactionsRequest(Message, versions="0-2", flexible="0+"):
    state_filters: Array[String] = ()
    producer_id_filters: Array[Int64] = ()
    duration_filter: Int64 = field("1+", default=-1)
    transactional_id_pattern: String | None = field("2+", default=None)


class ListedTransaction(Struct):
    transactional_id: String = ""
    producer_id: Int64 = 0
    transaction_state: String = ""


class ListTransactionsResponse(Message, versions="0-2", flexible="0+"):
    throttle_time_ms: Int32 = 0
    error_code: Int16 = 0
    unknown_state_filters: Array[String] = ()
    transaction_states: Array[ListedTransaction] = ()


API = declare(66, "ListTransactions", ListTransactionsRequest, ListTransactionsResponse)
