"""DeleteTopics (key 20), versions 1-6, by name or, from v6 on, by id. Left out: throttling (89)."""

from __future__ import annotations

from uuid import UUID

from broker_engine.errors import BrokerError
from broker_engine.handlers.api import Api, Call, Scope
from broker_engine.metadata.controller import TopicResult, delete_topics
from broker_engine.names import Name, from_wire, to_wire
from broker_engine.wire.messages.delete_topics import (
    DeletableTopicResult,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    DeleteTopicState,
)

_FIRST_VERSION_BY_ID = 6


async def handle(request: DeleteTopicsRequest, call: Call) -> DeleteTopicsResponse:
    references: list[Name | UUID] = [from_wire(name, call.tenant) for name in request.topic_names]
    references += [_reference(topic, call) for topic in request.topics]
    results = await call.broker.metadata.commit(
        lambda image: delete_topics(
            image,
            references,
            viewer_tenant=call.tenant,
            is_root=call.principal.is_root,
            config=call.broker.config,
        )
    )
    return DeleteTopicsResponse(responses=[_answer(result, call) for result in results])


def refuse(request: DeleteTopicsRequest, error: BrokerError) -> DeleteTopicsResponse:
    names: list[tuple[str | None, UUID | None]] = [(name, None) for name in request.topic_names]
    names += [(topic.name, topic.topic_id) for topic in request.topics]
    return DeleteTopicsResponse(
        responses=[
            DeletableTopicResult(
                name=name,
                error_code=error.code,
                error_message=error.message or None,
                **({} if topic_id is None else {"topic_id": topic_id}),
            )
            for name, topic_id in names
        ]
    )


def _reference(topic: DeleteTopicState, call: Call) -> Name | UUID:
    return topic.topic_id if topic.name is None else from_wire(topic.name, call.tenant)


def _answer(result: TopicResult, call: Call) -> DeletableTopicResult:
    return DeletableTopicResult(
        name=None if result.name is None else to_wire(result.name, call.tenant),
        topic_id=result.topic_id,
        error_code=result.error_code,
        error_message=result.error_message or None,
    )


API = Api(request=DeleteTopicsRequest, scope=Scope.TOPICS, handle=handle, refuse=refuse, is_for_controller=True)
