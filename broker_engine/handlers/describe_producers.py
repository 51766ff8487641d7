"""DescribeProducers (key 61), version 0: the producers that a partition's leader knows, and their open transactions."""

from __future__ import annotations

from broker_engine.errors import BrokerError
from broker_engine.handlers.api import Api, Call, Scope
from broker_engine.handlers.topics import asked_once, find_topic, led_partition
from broker_engine.ids import NO_TOPIC_ID
from broker_engine.server.local_partition import LocalPartition
from broker_engine.wire.messages.describe_producers import (
    DescribeProducersRequest,
    DescribeProducersResponse,
    PartitionResponse,
    ProducerState,
    TopicRequest,
    TopicResponse,
)


def handle(request: DescribeProducersRequest, call: Call) -> DescribeProducersResponse:
    asked = asked_once((topic.name, topic.partition_indexes) for topic in request.topics)
    topics = [
        TopicResponse(name=name, partitions=[_answer(name, index, call) for index in indexes])
        for name, indexes in asked.items()
    ]
    return DescribeProducersResponse(topics=topics)


def refuse(request: DescribeProducersRequest, error: BrokerError) -> DescribeProducersResponse:
    return DescribeProducersResponse(topics=[_refused(topic, error) for topic in request.topics])


def _refused(topic: TopicRequest, error: BrokerError) -> TopicResponse:
    return TopicResponse(name=topic.name, partitions=[_failure(index, error) for index in topic.partition_indexes])


def _failure(index: int, error: BrokerError) -> PartitionResponse:
    return PartitionResponse(partition_index=index, error_code=error.code, error_message=error.message or None)


def _answer(name: str, index: int, call: Call) -> PartitionResponse:
    try:
        partition = led_partition(call, find_topic(call, name, NO_TOPIC_ID), index)
    except BrokerError as error:
        return _failure(index, error)
    return PartitionResponse(partition_index=index, active_producers=_producers(partition))


def _producers(partition: LocalPartition) -> list[ProducerState]:
    states = partition.core.producers
    return [
        ProducerState(
            producer_id=producer_id,
            producer_epoch=producer.epoch,
            last_sequence=producer.last_sequence,
            last_timestamp=producer.last_timestamp,
            coordinator_epoch=producer.coordinator_epoch,
            current_txn_start_offset=-1
            if (first := states.transactions.first_offset_of(producer_id)) is None
            else first,
        )
        for producer_id, producer in sorted(states.items())
    ]


API = Api(request=DescribeProducersRequest, scope=Scope.TOPICS, handle=handle, refuse=refuse)
