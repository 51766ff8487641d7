"""One step of one member towards its target: first it gives up what it is not to keep, then it is given what others
have given up. So no partition ever has two owners, however answers are lost.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple
from uuid import UUID

from broker_engine.groups.consumer.member import MemberState, Standing
from broker_engine.groups.consumer.partitions import NOTHING_ASSIGNED, Assigned, Partitions, has_any

IsFree = Callable[[UUID, int], bool]


class Goal(NamedTuple):
    epoch: int
    target: Partitions


def next_standing(standing: Standing, goal: Goal, owned: Partitions | None, is_free: IsFree) -> Standing:
    """`owned` None: it did not say what it holds, so it may hold everything that it ever had."""
    if standing.state is MemberState.UNREVOKED_PARTITIONS:
        if _still_holds(owned, standing.revoking):
            return standing
        return _towards(standing, standing.epoch + 1, goal, owned, is_free)
    if standing.state is MemberState.STABLE and standing.epoch == goal.epoch:
        return standing
    return _towards(standing, standing.epoch, goal, owned, is_free)


def _towards(standing: Standing, epoch: int, goal: Goal, owned: Partitions | None, is_free: IsFree) -> Standing:
    kept = _split(standing.assigned, goal.target, is_kept=True)
    dropped = _split(standing.assigned, goal.target, is_kept=False)
    if dropped and _still_holds(owned, dropped):
        return _moved(standing, epoch, MemberState.UNREVOKED_PARTITIONS, kept, dropped)
    given, has_unreleased = _given(kept, goal, is_free)
    state = MemberState.UNRELEASED_PARTITIONS if has_unreleased else MemberState.STABLE
    return _moved(standing, goal.epoch, state, given, NOTHING_ASSIGNED)


def _still_holds(owned: Partitions | None, revoking: Assigned) -> bool:
    return owned is None or has_any(owned, revoking)


def _split(assigned: Assigned, target: Partitions, *, is_kept: bool) -> dict[UUID, dict[int, int]]:
    result = {}
    for topic_id, epochs in assigned.items():
        wanted = target.get(topic_id, frozenset())
        part = {index: epoch for index, epoch in epochs.items() if (index in wanted) is is_kept}
        if part:
            result[topic_id] = part
    return result


def _given(kept: Mapping[UUID, Mapping[int, int]], goal: Goal, is_free: IsFree) -> tuple[Assigned, bool]:
    """What it keeps and what is free, with the epoch in which it got each; and whether something is not free yet."""
    given = {topic_id: dict(epochs) for topic_id, epochs in kept.items()}
    has_unreleased = False
    for topic_id, indexes in goal.target.items():
        mine = kept.get(topic_id, {})
        for index in sorted(indexes):
            if index in mine:
                continue
            if is_free(topic_id, index):
                given.setdefault(topic_id, {})[index] = goal.epoch
            else:
                has_unreleased = True
    return given, has_unreleased


def _moved(standing: Standing, epoch: int, state: MemberState, assigned: Assigned, revoking: Assigned) -> Standing:
    return Standing(epoch=epoch, previous_epoch=standing.epoch, state=state, assigned=assigned, revoking=revoking)
