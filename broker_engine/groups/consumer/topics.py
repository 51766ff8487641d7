"""What a group sees of topics: those of its own tenant, under their physical texts, and under the short names that
members write and that regular expressions match.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable
from typing import Protocol
from uuid import UUID

from broker_engine.groups.consumer.assignors.spec import TopicSpec


class Topics(Protocol):
    @property
    def version(self) -> object:
        """Another object where anything about these topics may have changed."""
        ...

    @property
    def number(self) -> int:
        """Grows with every change: it is written beside what a regular expression matched."""
        ...

    def find(self, name: str) -> TopicSpec | None: ...

    def find_id(self, topic_id: UUID) -> TopicSpec | None: ...

    def short_names(self) -> Collection[str]:
        """What a regular expression may match: the engine's own topics are not among them."""
        ...

    def physical(self, short_name: str) -> str: ...

    def short(self, name: str) -> str: ...


def metadata_hash(topics: Iterable[TopicSpec]) -> int:
    """Changes when a subscribed topic is made, deleted, made again, or grows."""
    digest = hashlib.blake2b(digest_size=8)
    for topic in sorted(topics, key=lambda each: each.name):
        digest.update(topic.id.bytes + topic.partition_count.to_bytes(4, "big"))
    return int.from_bytes(digest.digest(), "big", signed=True)
