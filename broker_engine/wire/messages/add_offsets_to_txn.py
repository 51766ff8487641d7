"""AddOffsetsToTxn (key 25), versions 0-4: the group whose offsets a transaction will commit."""

from __future__ import annotations

from broker_engine.wire.api import declare
from broker_engine.wire.kinds import Int16, Int32, Int64, String
from broker_engine.wire.schema import Message


class AddOffsetsToTxnRequest(Message, versions="0-4", flexible="3+"):
    transactional_id: String = ""
    producer_id: Int64 = 0
    producer_epoch: Int16 = 0
    group_id: String = ""


class AddOffsetsToTxnResponse(Message, versions="0-4", flexible="3+"):
    throttle_time_ms: Int32 = 0
    error_code: Int16 = 0


API = declare(25, "AddOffsetsToTxn", AddOffsetsToTxnRequest, AddOffsetsToTxnResponse)
