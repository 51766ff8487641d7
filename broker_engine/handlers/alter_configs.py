"""AlterConfigs (key 33), versions 0-2: what it gives is all that the resource has afterwards. Java 4 no longer sends
it. Left out: client metrics, broker loggers.
"""

from __future__ import annotations

from broker_engine.errors import BrokerError, ErrorCode
from broker_engine.handlers.api import Api, Call, Scope
from broker_engine.handlers.config_resources import check_bounds, resource_of
from broker_engine.handlers.leaderless import log_ends_for_configs
from broker_engine.metadata.controller import ConfigResult, Resource, alter_configs, with_consequences
from broker_engine.names import to_wire
from broker_engine.wire.messages.alter_configs import (
    AlterConfigsRequest,
    AlterConfigsResource,
    AlterConfigsResourceResponse,
    AlterConfigsResponse,
)


async def handle(request: AlterConfigsRequest, call: Call) -> AlterConfigsResponse:
    changes: list[tuple[Resource, list[tuple[str, str | None]]]] = []
    answers = []
    for asked in request.resources:
        try:
            resource = resource_of(asked.resource_type, asked.resource_name, call)
            check_bounds(resource, [(each.name, each.value) for each in asked.configs], call)
        except BrokerError as error:
            answers.append(_refused(asked, error))
            continue
        changes.append((resource, [(c.name, c.value) for c in asked.configs]))
    config = call.broker.config
    log_ends = await log_ends_for_configs(call, ((each, [name for name, _ in items]) for each, items in changes))
    results = await call.broker.metadata.commit(
        lambda image: with_consequences(
            image, alter_configs(image, changes, validate_only=request.validate_only), config, log_ends
        )
    )
    return AlterConfigsResponse(responses=[*answers, *(_answer(result, call) for result in results)])


def refuse(request: AlterConfigsRequest, error: BrokerError) -> AlterConfigsResponse:
    return AlterConfigsResponse(responses=[_refused(asked, error) for asked in request.resources])


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


API = Api(request=AlterConfigsRequest, scope=Scope.TOPICS, handle=handle, refuse=refuse, is_for_controller=True)
