"""CreateOnFirstUse (key 10005, private), version 0: a broker asks the controller for a topic that a client just named.

Not CreateTopics: the tenant's policy decides whether topics are made by use, and how many partitions they get.
"""

from __future__ import annotations

from broker_engine.wire.api import declare
from broker_engine.wire.kinds import Array, Int16, Int64, String
from broker_engine.wire.schema import Message, Struct


class CreateOnFirstUseTopic(Struct):
    tenant: String = ""
    name: String = ""


class CreateOnFirstUseRequest(Message, versions="0"):
    topics: Array[CreateOnFirstUseTopic] = ()


class CreateOnFirstUseResult(Struct):
    tenant: String = ""
    name: String = ""
    error_code: Int16 = 0
    error_message: String | None = None


class CreateOnFirstUseResponse(Message, versions="0"):
    error_code: Int16 = 0
    metadata_offset: Int64 = -1
    results: Array[CreateOnFirstUseResult] = ()


API = declare(10005, "CreateOnFirstUse", CreateOnFirstUseRequest, CreateOnFirstUseResponse, is_internal=True)
