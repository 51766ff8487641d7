"""DescribeConfigs (key 32), versions 1-4, of topics, groups, this broker, and of what was set for all brokers ("").

Left out: client metrics, broker loggers.
"""

from __future__ import annotations

from broker_engine.config import ConfigRow, describe_broker, describe_cluster_wide, describe_topic
from broker_engine.config.group import describe_group
from broker_engine.errors import BrokerError, ErrorCode
from broker_engine.handlers.api import Api, Call, Scope
from broker_engine.handlers.config_resources import resource_of
from broker_engine.metadata.records import RESOURCE_BROKER, RESOURCE_GROUP, RESOURCE_TOPIC
from broker_engine.names import check_topic_name, from_wire
from broker_engine.wire.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
    DescribeConfigsSynonym,
)


def handle(request: DescribeConfigsRequest, call: Call) -> DescribeConfigsResponse:
    resources = {(asked.resource_type, asked.resource_name): asked for asked in request.resources}
    return DescribeConfigsResponse(results=[_describe(asked, request, call) for asked in resources.values()])


def refuse(request: DescribeConfigsRequest, error: BrokerError) -> DescribeConfigsResponse:
    return DescribeConfigsResponse(results=[_refused(asked, error) for asked in request.resources])


def _describe(asked: DescribeConfigsResource, request: DescribeConfigsRequest, call: Call) -> DescribeConfigsResult:
    try:
        rows = _rows(asked, call)
    except BrokerError as error:
        return _refused(asked, error)
    return DescribeConfigsResult(
        resource_type=asked.resource_type,
        resource_name=asked.resource_name,
        configs=[_result(row, request) for row in rows],
    )


def _rows(asked: DescribeConfigsResource, call: Call) -> list[ConfigRow]:
    resource = resource_of(asked.resource_type, asked.resource_name, call)
    config = call.broker.config
    if resource.type == RESOURCE_TOPIC:
        check_topic_name(from_wire(asked.resource_name, call.tenant).name)
        topic = call.broker.image.topic(resource.name)
        if topic is None:
            raise BrokerError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        factor = topic.replication_factor
        return describe_topic(topic.configs, config, replication_factor=factor, keys=asked.configuration_keys)
    if resource.type == RESOURCE_BROKER:
        return _broker_rows(asked, call)
    if resource.type == RESOURCE_GROUP:
        if not resource.name.name:
            raise BrokerError(ErrorCode.INVALID_REQUEST, "Group name must not be empty.")
        own = call.broker.image.group_configs.get(resource.name, {})
        return describe_group(own, config, keys=asked.configuration_keys)
    raise BrokerError(ErrorCode.INVALID_REQUEST, f"resource type {asked.resource_type} has no configs here")


def _broker_rows(asked: DescribeConfigsResource, call: Call) -> list[ConfigRow]:
    broker, changed = call.broker, call.broker.image.broker_configs
    cluster_wide = changed.get("", {})
    if not asked.resource_name:
        return describe_cluster_wide(cluster_wide, keys=asked.configuration_keys)
    if asked.resource_name != str(broker.node_id):
        raise BrokerError(ErrorCode.INVALID_REQUEST, f"this broker's id is {broker.node_id}: ask that one")
    own = changed.get(asked.resource_name, {})
    return describe_broker(broker.config, own=own, cluster_wide=cluster_wide, keys=asked.configuration_keys)


def _result(row: ConfigRow, request: DescribeConfigsRequest) -> DescribeConfigsResourceResult:
    synonyms = row.synonyms if request.include_synonyms else ()
    return DescribeConfigsResourceResult(
        name=row.name,
        value=row.value,
        read_only=row.read_only,
        config_source=row.source,
        is_sensitive=row.is_sensitive,
        synonyms=[DescribeConfigsSynonym(name=s.name, value=s.value, source=s.source) for s in synonyms],
        config_type=row.type,
        documentation=row.documentation if request.include_documentation else None,
    )


def _refused(asked: DescribeConfigsResource, error: BrokerError) -> DescribeConfigsResult:
    return DescribeConfigsResult(
        error_code=error.code,
        error_message=error.message or None,
        resource_type=asked.resource_type,
        resource_name=asked.resource_name,
    )


API = Api(request=DescribeConfigsRequest, scope=Scope.TOPICS, handle=handle, refuse=refuse)
