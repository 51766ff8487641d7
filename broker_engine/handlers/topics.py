"""Looking topics up for a caller: the one place where handlers turn wire names and ids into the caller's own topics.

A foreign name cannot even be asked for (names.from_wire puts the caller's tenant in front); a foreign id answers as
an absent one. The engine's own topics belong to root, so tenants never see them.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator
from typing import TYPE_CHECKING, TypeVar
from uuid import UUID

from broker_engine.errors import BrokerError, ErrorCode
from broker_engine.handlers.api import Call
from broker_engine.ids import NO_TOPIC_ID
from broker_engine.metadata.image import TopicImage
from broker_engine.names import from_wire, to_wire
from broker_engine.server.local_partition import LocalPartition

if TYPE_CHECKING:
    from broker_engine.server.broker import Node

Topic = TypeVar("Topic", bound=Hashable)


def topic_by_name(call: Call, text: str) -> TopicImage | None:
    return call.broker.image.topic(from_wire(text, call.tenant))


def topic_by_id(call: Call, topic_id: UUID) -> TopicImage | None:
    topic = call.broker.image.topic_by_id(topic_id)
    return topic if topic is not None and is_visible(call, topic) else None


def is_visible(call: Call, topic: TopicImage) -> bool:
    return call.principal.is_root or topic.name.tenant == call.tenant


def visible_topics(call: Call) -> Iterator[TopicImage]:
    """All that this caller may see, in the order of their names."""
    image = call.broker.image
    topics = image.topics.values() if call.principal.is_root else image.topics_of(call.tenant)
    yield from sorted(topics, key=lambda topic: topic.name)


def asked_once(asked: Iterable[tuple[Topic, Iterable[int]]]) -> dict[Topic, list[int]]:
    """Each topic once, each of its partitions once: who repeats a question a thousand times gets one answer, or a small
    request would be a huge answer.
    """
    merged: dict[Topic, dict[int, None]] = {}
    for topic, indexes in asked:
        merged.setdefault(topic, {}).update(dict.fromkeys(indexes))
    return {topic: list(indexes) for topic, indexes in merged.items()}


def wire_name(call: Call, topic: TopicImage) -> str:
    return to_wire(topic.name, call.tenant)


def find_topic(call: Call, name: str, topic_id: UUID) -> TopicImage:
    """By id where one is given (it wins over the name), else by name. BrokerError 100 or 3."""
    if topic_id != NO_TOPIC_ID or not name:
        topic = topic_by_id(call, topic_id)
        if topic is None:
            raise BrokerError(ErrorCode.UNKNOWN_TOPIC_ID)
        return topic
    topic = topic_by_name(call, name)
    if topic is None:
        raise BrokerError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    return topic


def led_partition(call: Call, topic: TopicImage, index: int) -> LocalPartition:
    """The partition as this broker leads it. BrokerError 3 where there is none, 6 where somebody else leads, or
    nobody.
    """
    partition = topic.partitions.get(index)
    if partition is None:
        raise BrokerError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    local = call.broker.partitions.find(topic.id, index)
    if local is None or local.leading is None:
        raise BrokerError(ErrorCode.NOT_LEADER_OR_FOLLOWER)
    return local


def leader_hint(call: Call, topic: TopicImage, index: int) -> tuple[int, int]:
    """(leader, leader epoch) for who came to the wrong broker; -1 and the epoch where nobody leads. (KIP-951)"""
    partition = topic.partitions.get(index)
    return (-1, -1) if partition is None else (partition.leader, partition.leader_epoch)


def hinted_nodes(call: Call, leaders: Iterable[int]) -> list[Node]:
    """Where the leaders of those hints are, on the kind of listener that the caller came by."""
    wanted = set(leaders)
    return [node for node in call.broker.nodes_for(call.session.listener) if node.id in wanted] if wanted else []


def check_leader_epoch(partition: LocalPartition, current_leader_epoch: int) -> None:
    """The client's idea of who leads: older than ours is fenced, newer has to wait for us; negative = no check."""
    if current_leader_epoch < 0:
        return
    if current_leader_epoch < partition.leader_epoch:
        raise BrokerError(ErrorCode.FENCED_LEADER_EPOCH)
    if current_leader_epoch > partition.leader_epoch:
        raise BrokerError(ErrorCode.UNKNOWN_LEADER_EPOCH)
