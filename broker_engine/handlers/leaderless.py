"""Before somebody leads who is not in sync: how far the logs of those go who could."""

from __future__ import annotations

from collections.abc import Iterable

from broker_engine.handlers.api import Call
from broker_engine.ids import NO_LEADER
from broker_engine.metadata.controller import LogEnds, Resource, every_partition
from broker_engine.metadata.image import MetadataImage
from broker_engine.metadata.partition_change import UNCLEAN
from broker_engine.metadata.records import RESOURCE_TOPIC
from broker_engine.metadata.sweep import Place
from broker_engine.names import Name


async def log_ends_of(call: Call, partitions: Iterable[tuple[Name, int]]) -> LogEnds:
    """Of those that nobody leads: whoever has the most should lead, not whoever comes first."""
    image = call.broker.image
    places = [place for name, index in partitions if (place := _leaderless(image, name, index)) is not None]
    return await call.broker.controller_loop.recovery.log_ends(image, places) if places else {}


async def log_ends_for_configs(call: Call, changes: Iterable[tuple[Resource, Iterable[str]]]) -> LogEnds:
    """Of topics that may be given the permission to elect uncleanly."""
    image = call.broker.image
    named = [resource.name for resource, keys in changes if resource.type == RESOURCE_TOPIC and UNCLEAN in keys]
    topics = [topic for name in named if (topic := image.topic(name)) is not None]
    return await log_ends_of(call, every_partition(topics)) if topics else {}


def _leaderless(image: MetadataImage, name: Name, index: int) -> Place | None:
    topic = image.topic(name)
    partition = topic.partitions.get(index) if topic else None
    return (topic, index, partition) if topic and partition and partition.leader == NO_LEADER else None
