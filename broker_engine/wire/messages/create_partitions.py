"""CreatePartitions (key 37), versions 0-3. `count` is the new total; null assignments let the broker place them."""

from __future__ import annotations

from broker_engine.wire.api import declare
from broker_engine.wire.kinds import Array, Bool, Int16, Int32, String
from broker_engine.wire.schema import Message, Struct


class CreatePartitionsAssignment(Struct):
    broker_ids: Array[Int32] = ()


class CreatePartitionsTopic(Struct):
    name: String = ""
    count: Int32 = 0
    assignments: Array[CreatePartitionsAssignment] | None = ()


class CreatePartitionsRequest(Message, versions="0-3", flexible="2+"):
    topics: Array[CreatePartitionsTopic] = ()
    timeout_ms: Int32 = 0
    validate_only: Bool = False


class CreatePartitionsTopicResult(Struct):
    name: String = ""
    error_code: Int16 = 0
    error_message: String | None = None


class CreatePartitionsResponse(Message, versions="0-3", flexible="2+"):
    throttle_time_ms: Int32 = 0
    results: Array[CreatePartitionsTopicResult] = ()


API = declare(37, "CreatePartitions", CreatePartitionsRequest, CreatePartitionsResponse)
