"""AllocateProducerIds (key 67), version 0: a broker takes a block of producer ids from the controller."""

from __future__ import annotations

from broker_engine.wire.api import declare
from broker_engine.wire.kinds import Int16, Int32, Int64
from broker_engine.wire.schema import Message


class AllocateProducerIdsRequest(Message, versions="0", flexible="0+"):
    broker_id: Int32 = 0
    broker_epoch: Int64 = -1


class AllocateProducerIdsResponse(Message, versions="0", flexible="0+"):
    throttle_time_ms: Int32 = 0
    error_code: Int16 = 0
    producer_id_start: Int64 = 0
    producer_id_len: Int32 = 0


API = declare(
    67, "AllocateProducerIds", AllocateProducerIdsRequest, AllocateProducerIdsResponse, is_between_brokers=True
)
