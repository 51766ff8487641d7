"""InitProducerId (key 22), versions 0-5. v6 (two-phase commit) is unstable in Kafka and not offered."""

from __future__ import annotations

from broker_engine.wire.api import declare
from broker_engine.wire.kinds import Int16, Int32, Int64, String
from broker_engine.wire.schema import Message, field


class InitProducerIdRequest(Message, versions="0-5", flexible="2+"):
    transactional_id: String | None = ""
    transaction_timeout_ms: Int32 = 0
    producer_id: Int64 = field("3+", default=-1)
    producer_epoch: Int16 = field("3+", default=-1)


class InitProducerIdResponse(Message, versions="0-5", flexible="2+"):
    throttle_time_ms: Int32 = 0
    error_code: Int16 = 0
    producer_id: Int64 = -1
    producer_epoch: Int16 = 0


API = declare(22, "InitProducerId", InitProducerIdRequest, InitProducerIdResponse)
