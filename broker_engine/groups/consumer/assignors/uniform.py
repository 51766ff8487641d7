"""`uniform`: everybody gets as many partitions as everybody else, give or take one, and keeps what it has as far as
that allows. Members with different subscriptions are levelled as far as their subscriptions allow.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Mapping
from uuid import UUID

from broker_engine.groups.consumer.assignors.spec import MemberSpec, TopicSpec
from broker_engine.groups.consumer.partitions import Partitions

Place = tuple[str, int]
"""(topic name, partition): names sort the same way everywhere."""
Held = dict[str, list[Place]]


def assign_uniformly(members: Mapping[str, MemberSpec], topics: Mapping[str, TopicSpec]) -> dict[str, Partitions]:
    if not members:
        return {}
    held, free = _kept(members, topics)
    subscriptions = {spec.topics for spec in members.values()}
    if len(subscriptions) == 1:
        _fill_to_quota(held, free)
    else:
        _fill_least_loaded(held, free, members)
        _level(held, members)
    return {member_id: _as_partitions(places, topics) for member_id, places in held.items()}


def _kept(members: Mapping[str, MemberSpec], topics: Mapping[str, TopicSpec]) -> tuple[Held, list[Place]]:
    """What everybody had and may have still, in order; and what nobody has."""
    by_id = {topic.id: topic for topic in topics.values()}
    taken: set[Place] = set()
    held: Held = {}
    for member_id in sorted(members):
        spec = members[member_id]
        held[member_id] = mine = []
        for place in sorted(_still_there(spec, by_id)):
            if place not in taken:
                taken.add(place)
                mine.append(place)
    wanted = frozenset[str]().union(*(spec.topics for spec in members.values()))
    read = [topics[name] for name in sorted(wanted & topics.keys())]
    everything = ((topic.name, index) for topic in read for index in range(topic.partition_count))
    return held, [place for place in everything if place not in taken]


def _still_there(spec: MemberSpec, by_id: Mapping[UUID, TopicSpec]) -> Iterable[Place]:
    for topic_id, indexes in spec.target.items():
        topic = by_id.get(topic_id)
        if topic is not None and topic.name in spec.topics:
            yield from ((topic.name, index) for index in indexes if index < topic.partition_count)


def _fill_to_quota(held: Held, free: list[Place]) -> None:
    """All subscribe to the same. Who has most keeps one more where the number does not divide."""
    total = len(free) + sum(len(places) for places in held.values())
    each, extra = divmod(total, len(held))
    by_load = sorted(held, key=lambda member_id: (-len(held[member_id]), member_id))
    quota = {member_id: each + (number < extra) for number, member_id in enumerate(by_load)}
    spare = list(free)
    for member_id in by_load:
        spare += held[member_id][quota[member_id] :]
        del held[member_id][quota[member_id] :]
    rest = iter(sorted(spare))
    for member_id in sorted(held):
        held[member_id] += [next(rest) for _ in range(quota[member_id] - len(held[member_id]))]


def _fill_least_loaded(held: Held, free: list[Place], members: Mapping[str, MemberSpec]) -> None:
    by_topic: dict[str, list[int]] = {}
    for name, index in free:
        by_topic.setdefault(name, []).append(index)
    # Topics that fewest may read come first: the others can still go elsewhere.
    readers = {name: [each for each in sorted(members) if name in members[each].topics] for name in by_topic}
    for name in sorted(by_topic, key=lambda topic: (len(readers[topic]), topic)):
        heap = [(len(held[member_id]), member_id) for member_id in readers[name]]
        heapq.heapify(heap)
        for index in by_topic[name]:
            count, member_id = heap[0]
            held[member_id].append((name, index))
            heapq.heapreplace(heap, (count + 1, member_id))


def _level(held: Held, members: Mapping[str, MemberSpec]) -> None:
    """Move from the fullest to the emptiest that may take it, while that brings them closer. Each move lowers the sum
    of squares, so it ends; the bound is for the loop's sake, which must not be held up.
    """
    for _ in range(sum(len(places) for places in held.values()) + len(held)):
        if not _move_one(held, members):
            return


def _move_one(held: Held, members: Mapping[str, MemberSpec]) -> bool:
    by_load = sorted(held, key=lambda member_id: (-len(held[member_id]), member_id))
    for giver in by_load:
        for taker in reversed(by_load):
            if len(held[giver]) - len(held[taker]) < 2:
                break
            place = next((place for place in reversed(held[giver]) if place[0] in members[taker].topics), None)
            if place is not None:
                held[giver].remove(place)
                held[taker].append(place)
                return True
    return False


def _as_partitions(places: Iterable[Place], topics: Mapping[str, TopicSpec]) -> Partitions:
    by_id: dict[UUID, set[int]] = {}
    for name, index in places:
        by_id.setdefault(topics[name].id, set()).add(index)
    return {topic_id: frozenset(by_id[topic_id]) for topic_id in by_id}
