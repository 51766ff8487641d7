"""IncrementalAlterConfigs (key 44), versions 0-1: set, delete, append to and subtract from configs of topics, brokers
and groups. Left out: client metrics, broker loggers.
"""

from __future__ import annotations

from broker_engine.errors import BrokerError, ErrorCode
from broker_engine.handlers.api import Api, Call, Scope
from broker_engine.handlers.config_resources import check_bounds, resource_of
from broker_engine.handlers.leaderless import log_ends_for_configs
from broker_engine.metadata.configs import ConfigOperation
from broker_engine.metadata.controller import (
    ConfigChange,
    ConfigResult,
    Resource,
    incremental_alter_configs,
    with_consequences,
)
from broker_engine.names import to_wire
from broker_engine.wire.messages.incremental_alter_configs import (
    AlterConfigsResource,
    AlterConfigsResourceResponse,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)


async def handle(request: IncrementalAlterConfigsRequest, call: Call) -> IncrementalAlterConfigsResponse:
    changes: list[tuple[Resource, list[ConfigChange]]] = []
    answers = []
    for asked in request.resources:
        try:
            resource = resource_of(asked.resource_type, asked.resource_name, call)
            set_ = [(each.name, each.value) for each in asked.configs if each.config_operation == ConfigOperation.SET]
            check_bounds(resource, set_, call)
        except BrokerError as error:
            answers.append(_refused(asked, error))
            continue
        changes.append((resource, [ConfigChange(c.name, c.config_operation, c.value) for c in asked.configs]))
    config = call.broker.config
    log_ends = await log_ends_for_configs(call, ((each, [c.name for c in items]) for each, items in changes))
    results = await call.broker.metadata.commit(
        lambda image: with_consequences(
            image, incremental_alter_configs(image, changes, validate_only=request.validate_only), config, log_ends
        )
    )
    return IncrementalAlterConfigsResponse(responses=[*answers, *(_answer(result, call) for result in results)])


def refuse(request: IncrementalAlterConfigsRequest, error: BrokerError) -> IncrementalAlterConfigsResponse:
    return IncrementalAlterConfigsResponse(responses=[_refused(asked, error) for asked in request.resources])


def _answer(result: ConfigResult, call: Call) -> AlterConfigsResourceResponse:
    return AlterConfigsResourceResponse(
        error_code=result.error_code,
        error_message=result.error_message if result.error_code is not ErrorCode.NONE else None,
        resource_type=result.resource.type,
        resource_name=to_wire(result.resource.name, call.tenant),
    )


def _refused(asked: AlterConfigsResource, error: BrokerError) -> AlterConfigsResourceResponse:
    return AlterConfigsResourceResponse(
        error_code=error.code,
        error_message=error.message or None,
        resource_type=asked.resource_type,
        resource_name=asked.resource_name,
    )


API = Api(
    request=IncrementalAlterConfigsRequest,
    scope=Scope.TOPICS,
    handle=handle,
    refuse=refuse,
    is_for_controller=True,
)
