"""AlterConfigs (key 33), versions 0-2.

Replaces all configs of a resource; IncrementalAlterConfigs is what new clients use.
"""

from __future__ import annotations

from broker_engine.wire.api import declare
from broker_engine.wire.kinds import Array, Bool, Int8, Int16, Int32, String
from broker_engine.wire.schema import Message, Struct


class AlterableConfig(Struct):
    name: String = ""
    value: String | None = ""


class AlterConfigsResource(Struct):
    resource_type: Int8 = 0
    resource_name: String = ""
    configs: Array[AlterableConfig] = ()


class AlterConfigsRequest(Message, versions="0-2", flexible="2+"):
    resources: Array[AlterConfigsResource] = ()
    validate_only: Bool = False


class AlterConfigsResourceResponse(Struct):
    error_code: Int16 = 0
    error_message: String | None = ""
    resource_type: Int8 = 0
    resource_name: String = ""


class AlterConfigsResponse(Message, versions="0-2", flexible="2+"):
    throttle_time_ms: Int32 = 0
    responses: Array[AlterConfigsResourceResponse] = ()


API = declare(33, "AlterConfigs", AlterConfigsRequest, AlterConfigsResponse)
