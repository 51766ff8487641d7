"""Every change of a group by a person or a key: offsets set or deleted, a group deleted. All are audited.

Offsets are only set while the group has no members: a member that goes on would commit over them a moment later, and
nobody would know which of the two holds. The engine refuses it as well.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass

from control_plane.audit.actions import record
from control_plane.engine.deadline import Deadline
from control_plane.engine.factory import get_engine
from control_plane.engine.groups import GroupName, GroupsEngine, GroupView, Place
from control_plane.engine.interface import EngineRefused
from control_plane.groups.reset import Step, To, Wish, steps_of
from control_plane.refusals import Conflict, Invalid, NotFound
from control_plane.tenants.models import Tenant

IN_REQUEST_S = 10.0
AUDITED_STEPS_MAX = 200
STILL_THERE = ("UNKNOWN_MEMBER_ID", "NON_EMPTY_GROUP", "GROUP_SUBSCRIBED_TO_TOPIC", "STALE_MEMBER_EPOCH")


@dataclass(frozen=True, slots=True)
class ResetPlan:
    steps: list[Step]
    member_count: int
    """While there are any, the plan cannot be carried out."""


def plan_reset(*, tenant: Tenant, group: str, wish: Wish) -> ResetPlan:
    """What would be set. Nothing changes."""
    engine, deadline = get_engine().groups, Deadline.after(IN_REQUEST_S)
    name = GroupName(tenant.pk, group)
    view = engine.describe(name, timeout_s=deadline.left_s())
    committed = {} if view is None else engine.committed(name, timeout_s=deadline.left_s())
    places = _places(wish, engine, name, committed, deadline)
    logs = engine.ranges(tenant.pk, places, timeout_s=deadline.left_s())
    at_ms = wish.look_up_ms(int(time.time() * 1000))
    found = {} if at_ms is None else engine.offsets_at(tenant.pk, places, at_ms, timeout_s=deadline.left_s())
    return ResetPlan(steps_of(wish, places, committed, logs, found), _member_count(view))


def _member_count(view: GroupView | None) -> int:
    return 0 if view is None else view.member_count or 0


def _places(
    wish: Wish, engine: GroupsEngine, name: GroupName, committed: Mapping[Place, int], deadline: Deadline
) -> list[Place]:
    if wish.to is To.FILE:
        wanted = sorted(wish.offsets)
        _check_exist(wanted, engine.partitions_of(name.tenant, _topics(wanted), timeout_s=deadline.left_s()), "csv")
        return wanted
    if wish.scopes is None:
        if not committed:
            raise NotFound(f"Group {name.name!r} has no offsets: name the topics that it shall begin with")
        return sorted(committed)
    topics = [scope.topic for scope in wish.scopes]
    counts = engine.partitions_of(name.tenant, topics, timeout_s=deadline.left_s())
    wanted = [
        (scope.topic, index)
        for scope in wish.scopes
        for index in (range(counts.get(scope.topic) or 0) if scope.partitions is None else scope.partitions)
    ]
    _check_exist([*wanted, *((topic, 0) for topic in topics)], counts, "topics")
    return sorted(set(wanted))


def _topics(places: list[Place]) -> list[str]:
    return sorted({topic for topic, _ in places})


def _check_exist(places: list[Place], counts: Mapping[str, int | None], field: str) -> None:
    for topic, index in places:
        count = counts.get(topic)
        if count is None:
            raise Invalid(field, f"there is no topic {topic!r}")
        if not 0 <= index < count:
            raise Invalid(field, f"topic {topic!r} has {count} partitions, there is no {index}")


def reset_offsets(*, actor: str, tenant: Tenant, group: str, wish: Wish) -> ResetPlan:
    plan = plan_reset(tenant=tenant, group=group, wish=wish)
    if plan.member_count:
        raise _has_members(group, plan.member_count)
    name, offsets = GroupName(tenant.pk, group), {(it.topic, it.partition): it.after for it in plan.steps}
    try:
        get_engine().groups.commit(name, offsets, timeout_s=IN_REQUEST_S)
    except EngineRefused as error:
        raise _refused(group, error) from error
    before = {_text(it): it.before for it in plan.steps[:AUDITED_STEPS_MAX]}
    after = {_text(it): it.after for it in plan.steps[:AUDITED_STEPS_MAX]}
    record(
        actor=actor,
        verb="group.offsets_reset",
        target=group,
        tenant=tenant,
        before={"offsets": before},
        after={"to": wish.to.value, "partitions": len(plan.steps), "offsets": after},
    )
    return plan


def delete_offsets(*, actor: str, tenant: Tenant, group: str, topic: str, partitions: tuple[int, ...] | None) -> int:
    """Of one topic: these partitions or all. How many there were."""
    engine, deadline, name = get_engine().groups, Deadline.after(IN_REQUEST_S), GroupName(tenant.pk, group)
    committed = engine.committed(name, timeout_s=deadline.left_s())
    chosen = {
        place: offset
        for place, offset in committed.items()
        if place[0] == topic and (partitions is None or place[1] in partitions)
    }
    if not chosen:
        raise NotFound(f"Group {group!r} has no offset there")
    try:
        engine.delete_offsets(name, sorted(chosen), timeout_s=deadline.left_s())
    except EngineRefused as error:
        raise _refused(group, error) from error
    before = {f"{name}-{index}": offset for (name, index), offset in sorted(chosen.items())[:AUDITED_STEPS_MAX]}
    record(actor=actor, verb="group.offsets_deleted", target=group, tenant=tenant, before={"offsets": before})
    return len(chosen)


def delete_group(*, actor: str, tenant: Tenant, group: str) -> None:
    engine, deadline, name = get_engine().groups, Deadline.after(IN_REQUEST_S), GroupName(tenant.pk, group)
    view = engine.describe(name, timeout_s=deadline.left_s())
    if view is None:
        raise NotFound(f"There is no group {group!r}")
    if view.member_count:
        raise _has_members(group, view.member_count)
    committed = engine.committed(name, timeout_s=deadline.left_s())
    try:
        engine.delete(name, timeout_s=deadline.left_s())
    except EngineRefused as error:
        raise _refused(group, error) from error
    before = {f"{topic}-{index}": offset for (topic, index), offset in sorted(committed.items())[:AUDITED_STEPS_MAX]}
    record(actor=actor, verb="group.deleted", target=group, tenant=tenant, before={"offsets": before})


def committed_offsets(*, tenant: Tenant, group: str) -> Mapping[Place, int]:
    """What an export holds: asked of the coordinator, so that it is of this moment."""
    engine, deadline, name = get_engine().groups, Deadline.after(IN_REQUEST_S), GroupName(tenant.pk, group)
    found = engine.committed(name, timeout_s=deadline.left_s())
    if not found and engine.describe(name, timeout_s=deadline.left_s()) is None:
        raise NotFound(f"There is no group {group!r}")
    return found


def _text(step: Step) -> str:
    return f"{step.topic}-{step.partition}"


def _has_members(group: str, count: int) -> Conflict:
    members = "1 member" if count == 1 else f"{count} members"
    return Conflict(f"Group {group!r} has {members}: stop them first, or their next commit would undo this")


def _refused(group: str, error: EngineRefused) -> Exception:
    """Somebody may have joined between our look and our word."""
    if error.code == "GROUP_ID_NOT_FOUND":
        return NotFound(f"There is no group {group!r}")
    if error.code in STILL_THERE:
        return Conflict(f"Group {group!r} has members: stop them first, or their next commit would undo this")
    return error
