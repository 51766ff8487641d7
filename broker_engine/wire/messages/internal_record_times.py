"""RecordTimes (key 10007, private), version 0: a coordinator asks a partition's leader when what a group has not read
yet was written.
"""

from __future__ import annotations

from broker_engine.wire.api import declare
from broker_engine.wire.kinds import Array, Int16, Int32, Int64, Uuid
from broker_engine.wire.primitives import NULL_UUID
from broker_engine.wire.schema import Message, Struct


class RecordTimesPlace(Struct):
    topic_id: Uuid = NULL_UUID
    partition_index: Int32 = 0
    offset: Int64 = 0


class RecordTimesRequest(Message, versions="0"):
    places: Array[RecordTimesPlace] = ()


class RecordTimesResponse(Message, versions="0"):
    error_code: Int16 = 0
    timestamps: Array[Int64] = ()
    """In the order of the places: -1 where there is no record yet, -2 where this broker cannot say."""


API = declare(10007, "RecordTimes", RecordTimesRequest, RecordTimesResponse, is_internal=True)
