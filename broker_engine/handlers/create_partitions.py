"""CreatePartitions (key 37), versions 0-3. Left out: throttling (89)."""

from __future__ import annotations

from broker_engine.errors import BrokerError
from broker_engine.handlers.api import Api, Call, Scope
from broker_engine.metadata.controller import NewPartitions, TopicResult, create_partitions
from broker_engine.names import from_wire, to_wire
from broker_engine.wire.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
    CreatePartitionsTopicResult,
)


async def handle(request: CreatePartitionsRequest, call: Call) -> CreatePartitionsResponse:
    wanted = [_new_partitions(topic, call) for topic in request.topics]
    results = await call.broker.metadata.commit(
        lambda image: create_partitions(image, wanted, validate_only=request.validate_only)
    )
    return CreatePartitionsResponse(results=[_answer(result, call) for result in results])


def refuse(request: CreatePartitionsRequest, error: BrokerError) -> CreatePartitionsResponse:
    return CreatePartitionsResponse(
        results=[
            CreatePartitionsTopicResult(name=topic.name, error_code=error.code, error_message=error.message or None)
            for topic in request.topics
        ]
    )


def _new_partitions(topic: CreatePartitionsTopic, call: Call) -> NewPartitions:
    assignments = topic.assignments
    return NewPartitions(
        from_wire(topic.name, call.tenant),
        topic.count,
        None if assignments is None else [tuple(each.broker_ids) for each in assignments],
    )


def _answer(result: TopicResult, call: Call) -> CreatePartitionsTopicResult:
    assert result.name is not None
    return CreatePartitionsTopicResult(
        name=to_wire(result.name, call.tenant),
        error_code=result.error_code,
        error_message=result.error_message or None,
    )


API = Api(request=CreatePartitionsRequest, scope=Scope.TOPICS, handle=handle, refuse=refuse, is_for_controller=True)
