"""EndTxn (key 26), versions 0-5. From v5 (transaction version 2) the answer has the producer's next id and epoch."""

from __future__ import annotations

from broker_engine.wire.api import declare
from broker_engine.wire.kinds import Bool, Int16, Int32, Int64, String
from broker_engine.wire.schema import Message, field


class EndTxnRequest(Message, versions="0-5", flexible="3+"):
    transactional_id: String = ""
    producer_id: Int64 = 0
    producer_epoch: Int16 = 0
    committed: Bool = False


class EndTxnResponse(Message, versions="0-5", flexible="3+"):
    throttle_time_ms: Int32 = 0
    error_code: Int16 = 0
    producer_id: Int64 = field("5+", default=-1, ignorable=True)
    producer_epoch: Int16 = field("5+", default=-1, ignorable=True)


API = declare(26, "EndTxn", EndTxnRequest, EndTxnResponse)
