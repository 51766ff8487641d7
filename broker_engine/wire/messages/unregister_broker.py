"""UnregisterBroker (key 64), version 0: forget a broker that will not come back."""

from __future__ import annotations

from broker_engine.wire.api import declare
from broker_engine.wire.kinds import Int16, Int32, String
from broker_engine.wire.schema import Message


class UnregisterBrokerRequest(Message, versions="0", flexible="0+"):
    broker_id: Int32 = 0


class UnregisterBrokerResponse(Message, versions="0", flexible="0+"):
    throttle_time_ms: Int32 = 0
    error_code: Int16 = 0
    error_message: String | None = ""


API = declare(64, "UnregisterBroker", UnregisterBrokerRequest, UnregisterBrokerResponse)
