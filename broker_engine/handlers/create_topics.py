"""CreateTopics (key 19), versions 2-7. Answered when the topic is committed, its logs are open and Metadata shows it.
Left out: the time-out (the answer comes when it is done), throttling by controller_mutation_rate (89).
"""

from __future__ import annotations

from broker_engine.config import describe_topic
from broker_engine.errors import BrokerError, ErrorCode
from broker_engine.handlers.api import Api, Call, Scope
from broker_engine.metadata.controller import NewTopic, TopicResult, create_topics
from broker_engine.names import from_wire, to_wire
from broker_engine.wire.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfigs,
    CreatableTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
)


async def handle(request: CreateTopicsRequest, call: Call) -> CreateTopicsResponse:
    topics = [_new_topic(topic, call) for topic in request.topics]
    broker = call.broker
    results = await broker.metadata.commit(
        lambda image: create_topics(
            image,
            topics,
            config=broker.config,
            new_id=broker.randomness.uuid,
            validate_only=request.validate_only,
        )
    )
    return CreateTopicsResponse(topics=[_answer(result, call) for result in results])


def refuse(request: CreateTopicsRequest, error: BrokerError) -> CreateTopicsResponse:
    return CreateTopicsResponse(
        topics=[
            CreatableTopicResult(name=topic.name, error_code=error.code, error_message=error.message or None)
            for topic in request.topics
        ]
    )


def _new_topic(topic: CreatableTopic, call: Call) -> NewTopic:
    return NewTopic(
        name=from_wire(topic.name, call.tenant),
        partition_count=topic.num_partitions,
        replication_factor=topic.replication_factor,
        assignments=[(each.partition_index, tuple(each.broker_ids)) for each in topic.assignments],
        configs={config.name: config.value for config in topic.configs},
    )


def _answer(result: TopicResult, call: Call) -> CreatableTopicResult:
    assert result.name is not None
    name = to_wire(result.name, call.tenant)
    if result.error_code is not ErrorCode.NONE:
        return CreatableTopicResult(name=name, error_code=result.error_code, error_message=result.error_message)
    return CreatableTopicResult(
        name=name,
        topic_id=result.topic_id,
        error_message=None,
        num_partitions=result.partition_count,
        replication_factor=result.replication_factor,
        configs=_configs(result, call),
    )


def _configs(result: TopicResult, call: Call) -> list[CreatableTopicConfigs]:
    rows = describe_topic(result.configs, call.broker.config, replication_factor=result.replication_factor)
    return [
        CreatableTopicConfigs(
            name=row.name,
            value=row.value,
            read_only=row.read_only,
            config_source=row.source,
            is_sensitive=row.is_sensitive,
        )
        for row in rows
    ]


API = Api(request=CreateTopicsRequest, scope=Scope.TOPICS, handle=handle, refuse=refuse, is_for_controller=True)
