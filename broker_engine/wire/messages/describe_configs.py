"""DescribeConfigs (key 32), versions 1-4.

A null list of keys asks for all. config_source and config_type are Kafka's numbers.
"""

from __future__ import annotations

from broker_engine.wire.api import declare
from broker_engine.wire.kinds import Array, Bool, Int8, Int16, Int32, String
from broker_engine.wire.schema import Message, Struct, field


class DescribeConfigsResource(Struct):
    resource_type: Int8 = 0
    resource_name: String = ""
    configuration_keys: Array[String] | None = ()


class DescribeConfigsRequest(Message, versions="1-4", flexible="4+"):
    resources: Array[DescribeConfigsResource] = ()
    include_synonyms: Bool = False
    include_documentation: Bool = field("3+", default=False)


class DescribeConfigsSynonym(Struct):
    name: String = ""
    value: String | None = ""
    source: Int8 = 0


class DescribeConfigsResourceResult(Struct):
    name: String = ""
    value: String | None = ""
    read_only: Bool = False
    config_source: Int8 = -1
    is_sensitive: Bool = False
    synonyms: Array[DescribeConfigsSynonym] = ()
    config_type: Int8 = field("3+", default=0, ignorable=True)
    documentation: String | None = field("3+", default="", ignorable=True)


class DescribeConfigsResult(Struct):
    error_code: Int16 = 0
    error_message: String | None = ""
    resource_type: Int8 = 0
    resource_name: String = ""
    configs: Array[DescribeConfigsResourceResult] = ()


class DescribeConfigsResponse(Message, versions="1-4", flexible="4+"):
    throttle_time_ms: Int32 = 0
    results: Array[DescribeConfigsResult] = ()


API = declare(32, "DescribeConfigs", DescribeConfigsRequest, DescribeConfigsResponse)
