"""ReplicaEnds (key 10006, private), version 0: how far this broker's logs go, for a leader to be found after a crash.

What it does not hold, or not open yet, is left out of the answer.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker_engine.errors import BrokerError
from broker_engine.handlers.api import Api, Call, Scope
from broker_engine.log.replica_log import ReplicaLog
from broker_engine.wire.messages.internal_replica_ends import (
    ReplicaEndsPartition,
    ReplicaEndsRequest,
    ReplicaEndsResponse,
    ReplicaEndsTopic,
    ReplicaEndsTopicResult,
)

if TYPE_CHECKING:
    from broker_engine.server.broker import Broker


def handle(request: ReplicaEndsRequest, call: Call) -> ReplicaEndsResponse:
    return ends_on(call.broker, request)


def ends_on(broker: Broker, request: ReplicaEndsRequest) -> ReplicaEndsResponse:
    topics = [
        ReplicaEndsTopicResult(topic_id=topic.topic_id, partitions=_ends(topic, broker)) for topic in request.topics
    ]
    return ReplicaEndsResponse(broker_epoch=broker.broker_epoch, topics=topics)


def refuse(request: ReplicaEndsRequest, error: BrokerError) -> ReplicaEndsResponse:
    return ReplicaEndsResponse(error_code=error.code)


def _ends(topic: ReplicaEndsTopic, broker: Broker) -> list[ReplicaEndsPartition]:
    rows = []
    for index in topic.partitions:
        local = broker.partitions.find(topic.topic_id, index)
        if local is not None and not local.is_retired:
            end_offset = local.log.log_end_offset
            epoch = _last_epoch(local.log)
            rows.append(ReplicaEndsPartition(partition_index=index, last_epoch=epoch, end_offset=end_offset))
    return rows


def _last_epoch(log: ReplicaLog) -> int:
    """Of the last record, or where all of them are deleted, of the last one that there was."""
    return log.last_record_epoch if log.log_end_offset > log.log_start_offset else log.latest_epoch


API = Api(request=ReplicaEndsRequest, scope=Scope.BROKERS, handle=handle, refuse=refuse)
