"""IncrementalAlterConfigs (key 44), versions 0-1. config_operation: 0 set, 1 delete, 2 append, 3 subtract."""

from __future__ import annotations

from broker_engine.wire.api import declare
from broker_engine.wire.kinds import Array, Bool, Int8, Int16, Int32, String
from broker_engine.wire.schema import Message, Struct


class AlterableConfig(Struct):
    name: String = ""
    config_operation: Int8 = 0
    value: String | None = ""


class AlterConfigsResource(Struct):
    resource_type: Int8 = 0
    resource_name: String = ""
    configs: Array[AlterableConfig] = ()


class IncrementalAlterConfigsRequest(Message, versions="0-1", flexible="1+"):
    resources: Array[AlterConfigsResource] = ()
    validate_only: Bool = False


class AlterConfigsResourceResponse(Struct):
    error_code: Int16 = 0
    error_message: String | None = ""
    resource_type: Int8 = 0
    resource_name: String = ""


class IncrementalAlterConfigsResponse(Message, versions="0-1", flexible="1+"):
    throttle_time_ms: Int32 = 0
    responses: Array[AlterConfigsResourceResponse] = ()


API = declare(44, "IncrementalAlterConfigs", IncrementalAlterConfigsRequest, IncrementalAlterConfigsResponse)
