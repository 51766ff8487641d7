"""Sets of partitions, by topic id. A topic without partitions is not in one, so that equal sets are equal mappings."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import TypeAlias
from uuid import UUID

Partitions: TypeAlias = Mapping[UUID, frozenset[int]]
Assigned: TypeAlias = Mapping[UUID, Mapping[int, int]]
"""Partitions with the epoch in which each was given to its owner: an old commit is judged by it."""

NO_PARTITIONS: Partitions = MappingProxyType({})
NOTHING_ASSIGNED: Assigned = MappingProxyType({})


def plain(assigned: Assigned) -> Partitions:
    return {topic_id: frozenset(indexes) for topic_id, indexes in assigned.items()}


def places(partitions: Mapping[UUID, Iterable[int]]) -> Iterator[tuple[UUID, int]]:
    """One by one, in an order of their own."""
    for topic_id in sorted(partitions):
        for index in sorted(partitions[topic_id]):
            yield topic_id, index


def has_any(partitions: Partitions, among: Mapping[UUID, Iterable[int]]) -> bool:
    return any(not indexes.isdisjoint(among[topic_id]) for topic_id, indexes in partitions.items() if topic_id in among)


def is_within(partitions: Partitions, bounds: Mapping[UUID, Iterable[int]]) -> bool:
    return all(topic_id in bounds and indexes.issubset(bounds[topic_id]) for topic_id, indexes in partitions.items())


def count(partitions: Mapping[UUID, Iterable[int]]) -> int:
    return sum(len(frozenset(indexes)) for indexes in partitions.values())
