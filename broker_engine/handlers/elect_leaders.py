"""ElectLeaders (key 43), versions 0-2: preferred (0) or unclean (1), for partitions or for all that the caller sees.

For all, as in Kafka, partitions that need no election are left out of the answer. Left out: the time-out (the answer
comes when it is done).
"""

from __future__ import annotations

from collections.abc import Iterable

from broker_engine.errors import BrokerError, ErrorCode
from broker_engine.handlers.api import Api, Call, Scope
from broker_engine.handlers.leaderless import log_ends_of
from broker_engine.metadata.controller import Decision, Election, ElectionResult, elect_leaders, every_partition
from broker_engine.metadata.image import MetadataImage, TopicImage
from broker_engine.names import Name, from_wire, to_wire
from broker_engine.wire.messages.elect_leaders import (
    ElectLeadersPartitionResult,
    ElectLeadersReplicaElectionResult,
    ElectLeadersRequest,
    ElectLeadersResponse,
)

_ELECTIONS = {0: Election.PREFERRED, 1: Election.UNCLEAN}


async def handle(request: ElectLeadersRequest, call: Call) -> ElectLeadersResponse:
    election = _ELECTIONS.get(request.election_type)
    if election is None:
        raise BrokerError(ErrorCode.INVALID_REQUEST, f"election type {request.election_type} is unknown")
    if election is Election.UNCLEAN and not call.principal.is_root:
        raise BrokerError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED, "records may be lost: ask an operator")
    is_all = request.topic_partitions is None
    named = _named(request, call)
    asked = every_partition(_visible(call.broker.image, call)) if is_all else named
    log_ends = await log_ends_of(call, asked) if election is Election.UNCLEAN else {}

    def decide(image: MetadataImage) -> Decision[ElectionResult]:
        partitions = every_partition(_visible(image, call)) if is_all else named
        return elect_leaders(image, partitions, election, config=call.broker.config, log_ends=log_ends)

    results = await call.broker.metadata.commit(decide)
    shown = [r for r in results if not (is_all and r.error_code is ErrorCode.ELECTION_NOT_NEEDED)]
    return ElectLeadersResponse(replica_election_results=_by_topic(shown, call))


def refuse(request: ElectLeadersRequest, error: BrokerError) -> ElectLeadersResponse:
    return ElectLeadersResponse(
        error_code=error.code,
        replica_election_results=[
            ElectLeadersReplicaElectionResult(
                topic=topic.topic,
                partition_result=[
                    ElectLeadersPartitionResult(
                        partition_id=index, error_code=error.code, error_message=error.message or None
                    )
                    for index in topic.partitions
                ],
            )
            for topic in request.topic_partitions or ()
        ],
    )


def _visible(image: MetadataImage, call: Call) -> list[TopicImage]:
    topics = image.topics.values() if call.principal.is_root else image.topics_of(call.tenant)
    return sorted(topics, key=lambda topic: topic.name)


def _named(request: ElectLeadersRequest, call: Call) -> list[tuple[Name, int]]:
    return [
        (from_wire(topic.topic, call.tenant), index)
        for topic in request.topic_partitions or ()
        for index in topic.partitions
    ]


def _by_topic(results: Iterable[ElectionResult], call: Call) -> list[ElectLeadersReplicaElectionResult]:
    topics: dict[Name, list[ElectLeadersPartitionResult]] = {}
    for result in results:
        row = ElectLeadersPartitionResult(
            partition_id=result.partition, error_code=result.error_code, error_message=result.error_message
        )
        topics.setdefault(result.name, []).append(row)
    return [
        ElectLeadersReplicaElectionResult(topic=to_wire(name, call.tenant), partition_result=rows)
        for name, rows in topics.items()
    ]


API = Api(request=ElectLeadersRequest, scope=Scope.TOPICS, handle=handle, refuse=refuse, is_for_controller=True)
