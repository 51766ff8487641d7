"""`uniform`: everybody gets as many partitions as everybody else, give or take one, and keeps what it has as far as
that allows. Members with different subscriptions are levelled as far as their subscriptions allow.
"""

from __future__ import annotations

import heapq
from collections.abc import Collection, Iterable, Mapping
from uuid import UUID

from broker_engine.groups.consumer.assignors.spec import MemberSpec, TopicSpec
from broker_engine.groups.consumer.partitions import Partitions

Place = tuple[str, int]
"""(topic name, partition): names sort the same way everywhere."""
Held = dict[str, list[Place]]
Holders = dict[str, dict[str, list[int]]]
"""By topic: which member holds which partitions of it."""
_PASSES_MAX = 20


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
    readers = _readers(by_topic, members)
    for name in sorted(by_topic, key=lambda topic: (len(readers[topic]), topic)):
        heap = [(len(held[member_id]), member_id) for member_id in readers[name]]
        heapq.heapify(heap)
        for index in by_topic[name]:
            count, member_id = heap[0]
            held[member_id].append((name, index))
            heapq.heapreplace(heap, (count + 1, member_id))


def _readers(names: Collection[str], members: Mapping[str, MemberSpec]) -> dict[str, list[str]]:
    readers: dict[str, list[str]] = {name: [] for name in names}
    for member_id in sorted(members):
        for name in members[member_id].topics.intersection(readers):
            readers[name].append(member_id)
    return readers


def _level(held: Held, members: Mapping[str, MemberSpec]) -> None:
    """Topic by topic, until no topic has a move left. Each move lowers the sum of squares, so it ends; the bound is for
    the loop's sake, which must not be held up.
    """
    holders: Holders = {}
    for member_id, places in held.items():
        for name, index in places:
            holders.setdefault(name, {}).setdefault(member_id, []).append(index)
    readers = _readers(holders, members)
    loads = {member_id: len(places) for member_id, places in held.items()}
    for _ in range(_PASSES_MAX):
        if not sum(_level_topic(holders[name], readers[name], loads) for name in sorted(holders)):
            break
    for places in held.values():
        places.clear()
    for name, by_member in holders.items():
        for member_id, indexes in by_member.items():
            held[member_id] += [(name, index) for index in indexes]


def _level_topic(holders: dict[str, list[int]], readers: list[str], loads: dict[str, int]) -> int:
    """From the fullest that has a partition of it to the emptiest that may have one, while that brings them closer: the
    loads of the two only come nearer, so an entry that is out of date is never on top. How many moved.
    """
    if max(map(loads.__getitem__, holders)) - min(map(loads.__getitem__, readers)) < 2:
        return 0
    givers = [(-loads[member_id], member_id) for member_id in holders]
    takers = [(loads[member_id], member_id) for member_id in readers]
    heapq.heapify(givers)
    heapq.heapify(takers)
    moved = 0
    while givers and -givers[0][0] - takers[0][0] >= 2:
        (_, giver), (_, taker) = givers[0], takers[0]
        holders.setdefault(taker, []).append(holders[giver].pop())
        loads[giver] -= 1
        loads[taker] += 1
        moved += 1
        heapq.heapreplace(takers, (loads[taker], taker))
        if holders[giver]:
            heapq.heapreplace(givers, (-loads[giver], giver))
        else:
            del holders[giver]
            heapq.heappop(givers)
    return moved


def _as_partitions(places: Iterable[Place], topics: Mapping[str, TopicSpec]) -> Partitions:
    by_id: dict[UUID, set[int]] = {}
    for name, index in places:
        by_id.setdefault(topics[name].id, set()).add(index)
    return {topic_id: frozenset(by_id[topic_id]) for topic_id in by_id}
