"""The topics of one tenant as a group sees them, in the image of the moment."""

from __future__ import annotations

from collections.abc import Collection
from uuid import UUID

from broker_engine.groups.consumer.assignors import TopicSpec
from broker_engine.metadata.image import MetadataImage, TopicImage
from broker_engine.names import INTERNAL_TOPICS, ROOT, from_wire, physical, to_wire


class TenantTopics:
    def __init__(self, image: MetadataImage, tenant: str) -> None:
        self._image = image
        self._tenant = tenant

    @property
    def version(self) -> object:
        return self._image.namespace(self._tenant)

    @property
    def number(self) -> int:
        return self._image.next_offset

    def find(self, name: str) -> TopicSpec | None:
        topic = self._image.topic(from_wire(name, ROOT))
        return None if topic is None else _spec(topic)

    def find_id(self, topic_id: UUID) -> TopicSpec | None:
        topic = self._image.topic_by_id(topic_id)
        return None if topic is None else _spec(topic)

    def short_names(self) -> Collection[str]:
        names = self._image.namespace(self._tenant).topics.keys()
        return names if self._tenant != ROOT else names - INTERNAL_TOPICS

    def physical(self, short_name: str) -> str:
        return physical(from_wire(short_name, self._tenant))

    def short(self, name: str) -> str:
        return to_wire(from_wire(name, ROOT), self._tenant)


def tenant_of(group: str) -> str:
    """Of a group's physical text."""
    return from_wire(group, ROOT).tenant


def _spec(topic: TopicImage) -> TopicSpec:
    return TopicSpec(topic.id, physical(topic.name), topic.partition_count)
