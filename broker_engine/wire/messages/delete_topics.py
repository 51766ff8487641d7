"""DeleteTopics (key 20), versions 1-6. Names up to v5; from v6 each topic is a name or an id."""

from __future__ import annotations

from broker_engine.wire.api import declare
from broker_engine.wire.kinds import Array, Int16, Int32, String, Uuid
from broker_engine.wire.primitives import NULL_UUID
from broker_engine.wire.schema import Message, Struct, field


class DeleteTopicState(Struct):
    name: String | None = None
    topic_id: Uuid = NULL_UUID


class DeleteTopicsRequest(Message, versions="1-6", flexible="4+"):
    topic_names: Array[String] = field("1-5", default=(), ignorable=True)
    topics: Array[DeleteTopicState] = field("6+", default=())
    timeout_ms: Int32 = 0


class DeletableTopicResult(Struct):
    name: String | None = field(default="", nullable="6+")
    topic_id: Uuid = field("6+", default=NULL_UUID, ignorable=True)
    error_code: Int16 = 0
    error_message: String | None = field("5+", default=None, ignorable=True)


class DeleteTopicsResponse(Message, versions="1-6", flexible="4+"):
    throttle_time_ms: Int32 = 0
    responses: Array[DeletableTopicResult] = ()


API = declare(20, "DeleteTopics", DeleteTopicsRequest, DeleteTopicsResponse)
