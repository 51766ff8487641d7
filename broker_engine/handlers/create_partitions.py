"""CreatePartitions (key 37), versions 0-3. Left out: throttling (89).

The coordinators' topics keep the partitions that they have: which one knows of a group or a transactional id hangs on
their number, and what is stored would be looked for elsewhere.
"""

from __future__ import annotations

from broker_engine.errors import BrokerError, ErrorCode
from broker_engine.handlers.api import Api, Call, Scope
from broker_engine.metadata.controller import NewPartitions, TopicResult, create_partitions
from broker_engine.metadata.topics import OFFSETS_TOPIC, TRANSACTIONS_TOPIC
from broker_engine.names import from_wire, to_wire
from broker_engine.wire.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
    CreatePartitionsTopicResult,
)

_FIXED = {
    name: TopicResult(name, ErrorCode.INVALID_PARTITIONS, "The coordinators' topics keep their number of partitions.")
    for name in (OFFSETS_TOPIC, TRANSACTIONS_TOPIC)
}


async def handle(request: CreatePartitionsRequest, call: Call) -> CreatePartitionsResponse:
    wanted = [_new_partitions(topic, call) for topic in request.topics]
    allowed = [each for each in wanted if each.name not in _FIXED]
    results = await call.broker.metadata.commit(
        lambda image: create_partitions(image, allowed, validate_only=request.validate_only)
    )
    refused = [_FIXED[name] for name in _FIXED if any(each.name == name for each in wanted)]
    return CreatePartitionsResponse(results=[_answer(result, call) for result in (*results, *refused)])


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
