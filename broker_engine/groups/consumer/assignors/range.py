"""`range`: of each topic every subscriber gets one run of partitions, so that topics of one partition count are split
alike and can be joined. Members stand in one order, static ones first by their instance, so that a member that comes
back finds its runs again; beyond that nothing sticks, because runs and stickiness exclude each other.
"""

from __future__ import annotations

from collections.abc import Mapping
from uuid import UUID

from broker_engine.groups.consumer.assignors.spec import MemberSpec, TopicSpec
from broker_engine.groups.consumer.partitions import Partitions


def assign_ranges(members: Mapping[str, MemberSpec], topics: Mapping[str, TopicSpec]) -> dict[str, Partitions]:
    assigned: dict[str, dict[UUID, frozenset[int]]] = {member_id: {} for member_id in members}
    ordered = sorted(members, key=lambda member_id: _place(member_id, members[member_id]))
    for name in sorted(topics):
        subscribers = [member_id for member_id in ordered if name in members[member_id].topics]
        for member_id, run in _runs(subscribers, topics[name].partition_count):
            assigned[member_id][topics[name].id] = run
    return dict(assigned)


def _place(member_id: str, spec: MemberSpec) -> tuple[bool, str]:
    return (spec.instance_id is None, spec.instance_id or member_id)


def _runs(member_ids: list[str], partition_count: int) -> list[tuple[str, frozenset[int]]]:
    if not member_ids:
        return []
    each, extra = divmod(partition_count, len(member_ids))
    runs, start = [], 0
    for number, member_id in enumerate(member_ids):
        end = start + each + (number < extra)
        if end > start:
            runs.append((member_id, frozenset(range(start, end))))
        start = end
    return runs
