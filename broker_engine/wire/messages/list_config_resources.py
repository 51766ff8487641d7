"""ListConfigResources (key 74), versions 0-1: which resources have configs of their own. Version 0 is of client metrics
only.
"""

from __future__ import annotations

from broker_engine.wire.api import declare
from broker_engine.wire.kinds import Array, Int8, Int16, Int32, String
from broker_engine.wire.schema import Message, Struct, field


class ListConfigResourcesRequest(Message, versions="0-1", flexible="0+"):
    resource_types: Array[Int8] = field("1+", default=())


class ConfigResourceName(Struct):
    resource_name: String = ""
    resource_type: Int8 = field("1+", default=16, ignorable=True)


class ListConfigResourcesResponse(Message, versions="0-1", flexible="0+"):
    throttle_time_ms: Int32 = 0
    error_code: Int16 = 0
    config_resources: Array[ConfigResourceName] = ()


API = declare(74, "ListConfigResources", ListConfigResourcesRequest, ListConfigResourcesResponse)
