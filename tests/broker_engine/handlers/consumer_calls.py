"""Short words for what tests of the consumer protocol say over the wire."""

from __future__ import annotations

from typing import Any

from broker_engine.wire.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from broker_engine.wire.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    HeartbeatTopicPartitions,
)
from tests.broker_engine.raw_client import RawClient


def beat(client: RawClient, group: str, member: str, epoch: int, version: int = 1, **fields: Any) -> Any:
    request = ConsumerGroupHeartbeatRequest(group_id=group, member_id=member, member_epoch=epoch, **fields)
    return client.call(request, version)


def join_consumer(client: RawClient, group: str, member: str, *topics: str, version: int = 1, **fields: Any) -> Any:
    given: dict[str, Any] = {
        "rebalance_timeout_ms": 30_000,
        "subscribed_topic_names": list(topics) or None,
        "topic_partitions": [],
        **fields,
    }
    return beat(client, group, member, 0, version, **given)


def held(answer: Any) -> list[int] | None:
    """Partition numbers of an answer's assignment; None where it says nothing new."""
    if answer.assignment is None:
        return None
    return sorted(index for topic in answer.assignment.topic_partitions for index in topic.partitions)


def as_owned(answer: Any) -> list[HeartbeatTopicPartitions]:
    return [
        HeartbeatTopicPartitions(topic_id=topic.topic_id, partitions=topic.partitions)
        for topic in answer.assignment.topic_partitions
    ]


def describe(client: RawClient, group: str, version: int = 1) -> Any:
    return client.call(ConsumerGroupDescribeRequest(group_ids=[group]), version).groups[0]
