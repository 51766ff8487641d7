"""AlterPartitionReassignments (key 45), versions 0-1: begin, change or cancel moves of replicas. Answered when it is
decided; ListPartitionReassignments tells how far they are. For operators: a tenant is refused (31), as is who has no
rights on a Kafka cluster. Left out: the time-out.
"""

from __future__ import annotations

from collections.abc import Iterable

from broker_engine.errors import BrokerError, ErrorCode
from broker_engine.handlers.api import Api, Call, Scope
from broker_engine.metadata.controller import Reassignment, ReassignmentResult, alter_reassignments
from broker_engine.names import Name, from_wire, to_wire
from broker_engine.wire.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ReassignablePartitionResponse,
    ReassignableTopicResponse,
)


async def handle(request: AlterPartitionReassignmentsRequest, call: Call) -> AlterPartitionReassignmentsResponse:
    if not call.principal.is_root:
        raise BrokerError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED, "where replicas stand is the operators' business")
    wanted = [
        Reassignment(
            from_wire(topic.name, call.tenant),
            partition.partition_index,
            None if partition.replicas is None else tuple(partition.replicas),
        )
        for topic in request.topics
        for partition in topic.partitions
    ]
    may_change = request.allow_replication_factor_change
    config = call.broker.config
    results = await call.broker.metadata.commit(
        lambda image: alter_reassignments(image, wanted, config=config, allow_factor_change=may_change)
    )
    return AlterPartitionReassignmentsResponse(
        allow_replication_factor_change=may_change, error_message=None, responses=_by_topic(results, call)
    )


def refuse(request: AlterPartitionReassignmentsRequest, error: BrokerError) -> AlterPartitionReassignmentsResponse:
    return AlterPartitionReassignmentsResponse(error_code=error.code, error_message=error.message or None)


def _by_topic(results: Iterable[ReassignmentResult], call: Call) -> list[ReassignableTopicResponse]:
    topics: dict[Name, list[ReassignablePartitionResponse]] = {}
    for result in results:
        row = ReassignablePartitionResponse(
            partition_index=result.partition, error_code=result.error_code, error_message=result.error_message
        )
        topics.setdefault(result.name, []).append(row)
    return [
        ReassignableTopicResponse(name=to_wire(name, call.tenant), partitions=rows) for name, rows in topics.items()
    ]


API = Api(
    request=AlterPartitionReassignmentsRequest,
    scope=Scope.TOPICS,
    handle=handle,
    refuse=refuse,
    is_for_controller=True,
)
