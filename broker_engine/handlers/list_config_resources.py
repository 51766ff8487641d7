"""ListConfigResources (key 74), versions 0-1: topics, brokers, and groups that have configs of their own. Version 0
asks for client metrics, of which there are none. A tenant sees its own topics and groups.
"""

from __future__ import annotations

from collections.abc import Iterator

from broker_engine.errors import BrokerError, ErrorCode
from broker_engine.handlers.api import Api, Call, Scope
from broker_engine.handlers.topics import is_visible, wire_name
from broker_engine.metadata.records import RESOURCE_BROKER, RESOURCE_GROUP, RESOURCE_TOPIC
from broker_engine.names import to_wire
from broker_engine.wire.messages.list_config_resources import (
    ConfigResourceName,
    ListConfigResourcesRequest,
    ListConfigResourcesResponse,
)

_FIRST_VERSION_WITH_TYPES = 1
_RESOURCE_BROKER_LOGGER, _RESOURCE_CLIENT_METRICS = 8, 16
_TYPES = (RESOURCE_TOPIC, RESOURCE_BROKER, _RESOURCE_BROKER_LOGGER, _RESOURCE_CLIENT_METRICS, RESOURCE_GROUP)


def handle(request: ListConfigResourcesRequest, call: Call) -> ListConfigResourcesResponse:
    asked = list(request.resource_types) if call.version >= _FIRST_VERSION_WITH_TYPES else [_RESOURCE_CLIENT_METRICS]
    if any(each not in _TYPES for each in asked):
        raise BrokerError(ErrorCode.UNSUPPORTED_VERSION, "There is no such type of resource.")
    found = [
        ConfigResourceName(resource_name=name, resource_type=each)
        for each in _TYPES
        if not asked or each in asked
        for name in _names(each, call)
    ]
    return ListConfigResourcesResponse(config_resources=found)


def refuse(request: ListConfigResourcesRequest, error: BrokerError) -> ListConfigResourcesResponse:
    return ListConfigResourcesResponse(error_code=error.code)


def _names(resource_type: int, call: Call) -> Iterator[str]:
    image = call.broker.image
    if resource_type == RESOURCE_TOPIC:
        yield from sorted(wire_name(call, topic) for topic in image.topics.values() if is_visible(call, topic))
    elif resource_type == RESOURCE_GROUP:
        own = (name for name in image.group_configs if call.principal.is_root or name.tenant == call.tenant)
        yield from sorted(to_wire(name, call.tenant) for name in own)
    elif resource_type in (RESOURCE_BROKER, _RESOURCE_BROKER_LOGGER) and call.principal.is_root:
        yield from (str(node_id) for node_id in sorted(image.brokers))


API = Api(request=ListConfigResourcesRequest, scope=Scope.GROUPS, handle=handle, refuse=refuse)
