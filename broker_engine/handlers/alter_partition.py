"""AlterPartition (key 56), versions 2-3: a leader proposes ISRs, the controller decides (metadata/isr.py)."""

from __future__ import annotations

from collections.abc import Iterable
from uuid import UUID

from broker_engine.errors import BrokerError
from broker_engine.handlers.api import Api, Call, Scope
from broker_engine.metadata.controller import IsrProposal, IsrResult, alter_partition
from broker_engine.metadata.isr import UNKNOWN_EPOCH
from broker_engine.wire.messages.alter_partition import (
    AlterPartitionPartition,
    AlterPartitionPartitionResult,
    AlterPartitionRequest,
    AlterPartitionResponse,
    AlterPartitionTopicResult,
)

_FIRST_VERSION_WITH_EPOCHS = 3


async def handle(request: AlterPartitionRequest, call: Call) -> AlterPartitionResponse:
    changes = [
        _proposal(topic.topic_id, partition, call.version) for topic in request.topics for partition in topic.partitions
    ]
    config = call.broker.config
    results = await call.broker.metadata.commit(
        lambda image: alter_partition(
            image, broker_id=request.broker_id, broker_epoch=request.broker_epoch, changes=changes, config=config
        )
    )
    return AlterPartitionResponse(topics=_by_topic(results))


def refuse(request: AlterPartitionRequest, error: BrokerError) -> AlterPartitionResponse:
    return AlterPartitionResponse(error_code=error.code)


def _proposal(topic_id: UUID, asked: AlterPartitionPartition, version: int) -> IsrProposal:
    if version < _FIRST_VERSION_WITH_EPOCHS:
        isr = [(member, UNKNOWN_EPOCH) for member in asked.new_isr]
    else:
        isr = [(member.broker_id, member.broker_epoch) for member in asked.new_isr_with_epochs]
    return IsrProposal(
        topic_id=topic_id,
        partition=asked.partition_index,
        leader_epoch=asked.leader_epoch,
        partition_epoch=asked.partition_epoch,
        isr=isr,
        leader_recovery_state=asked.leader_recovery_state,
    )


def _by_topic(results: Iterable[IsrResult]) -> list[AlterPartitionTopicResult]:
    topics: dict[UUID, list[AlterPartitionPartitionResult]] = {}
    for result in results:
        topics.setdefault(result.topic_id, []).append(_answer(result))
    return [AlterPartitionTopicResult(topic_id=topic_id, partitions=rows) for topic_id, rows in topics.items()]


def _answer(result: IsrResult) -> AlterPartitionPartitionResult:
    state = result.state
    if state is None:
        return AlterPartitionPartitionResult(partition_index=result.partition, error_code=result.error_code)
    return AlterPartitionPartitionResult(
        partition_index=result.partition,
        leader_id=state.leader,
        leader_epoch=state.leader_epoch,
        isr=list(state.isr),
        leader_recovery_state=state.leader_recovery_state,
        partition_epoch=state.partition_epoch,
    )


API = Api(request=AlterPartitionRequest, scope=Scope.BROKERS, handle=handle, refuse=refuse)
