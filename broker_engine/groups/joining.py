"""JoinGroup of a classic group: who is let in, and as whom. A newcomer first gets an id, a member comes again, a static
member (KIP-345) comes back under its name without a rebalance. What follows for the others is in classic.py.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

from broker_engine.errors import ErrorCode
from broker_engine.groups.classic import ClassicGroup
from broker_engine.groups.consumer_protocol import PROTOCOL_TYPE, read_subscription
from broker_engine.groups.effects import Effect, JoinAnswer, Reply, Return, Store, refuse_join, release
from broker_engine.groups.member import JoinAsk, Member, Waiter, new_member
from broker_engine.groups.states import GroupState
from broker_engine.groups.timeline import EventKind
from broker_engine.groups.topic_news import NO_NEWS, TopicNews, subscription_news

NewMemberId = Callable[[JoinAsk], str]


def join(group: ClassicGroup, ask: JoinAsk, waiter: Waiter, now_ms: int, new_id: NewMemberId) -> list[Effect]:
    code = _check(group, ask)
    if code is not ErrorCode.NONE:
        return [refuse_join(waiter, code, ask.member_id)]
    if ask.member_id:
        return _join_known(group, ask, waiter, now_ms)
    member_id = new_id(ask)
    known_id = group.roster.id_of(ask.instance_id)
    if known_id is not None:
        return _replace_static(group, group.members[known_id], ask, waiter, now_ms, new_id=member_id)
    if ask.instance_id is None and ask.needs_known_id:
        group.roster.pending[member_id] = now_ms + ask.session_timeout_ms
        return [refuse_join(waiter, ErrorCode.MEMBER_ID_REQUIRED, member_id)]
    return _add(group, member_id, ask, waiter, now_ms)


def _check(group: ClassicGroup, ask: JoinAsk) -> ErrorCode:
    if group.state is GroupState.DEAD:
        return ErrorCode.COORDINATOR_NOT_AVAILABLE
    if not group.roster.fits(ask):
        return ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    if not group.roster.knows(ask) and len(group.members) >= group.size_max:
        return ErrorCode.GROUP_MAX_SIZE_REACHED
    return ErrorCode.NONE


def _join_known(group: ClassicGroup, ask: JoinAsk, waiter: Waiter, now_ms: int) -> list[Effect]:
    code = group.roster.check(ask.member_id, ask.instance_id)
    if code is ErrorCode.UNKNOWN_MEMBER_ID and group.roster.pending.pop(ask.member_id, None) is not None:
        return _add(group, ask.member_id, ask, waiter, now_ms)
    if code is not ErrorCode.NONE:
        return [refuse_join(waiter, code, ask.member_id)]
    return _rejoin(group, group.members[ask.member_id], ask, waiter, now_ms)


def _add(group: ClassicGroup, member_id: str, ask: JoinAsk, waiter: Waiter, now_ms: int) -> list[Effect]:
    member = new_member(member_id, ask, now_ms)
    member.joining = waiter
    return group.admit(member, ask.protocol_type, now_ms)


def _rejoin(group: ClassicGroup, member: Member, ask: JoinAsk, waiter: Waiter, now_ms: int) -> list[Effect]:
    member.seen_ms = now_ms
    is_same = member.protocols == ask.protocols
    is_retry = group.state is GroupState.COMPLETING_REBALANCE and is_same
    is_content = group.state is GroupState.STABLE and is_same and member.id != group.leader
    earlier, member.joining = member.joining, None
    effects: list[Effect] = [] if earlier is None else [refuse_join(earlier, ErrorCode.UNKNOWN_MEMBER_ID, member.id)]
    news = _news(group, member, ask)
    group.roster.take_over(member, ask)
    if is_retry or is_content:
        return [*effects, Reply(waiter, group.joined(member))]
    if news is not None:
        group.note(EventKind.SUBSCRIPTION_CHANGED, member, now_ms, news)
    elif group.state is not GroupState.PREPARING_REBALANCE:
        group.note(EventKind.REJOINED, member, now_ms)
    member.joining = waiter
    return [*effects, *group.rebalance(now_ms)]


def _news(group: ClassicGroup, member: Member, ask: JoinAsk) -> TopicNews | None:
    """Which topics it asks for that it did not ask for before. Other bytes may say the same: a member that gave
    partitions up tells so in them. What cannot be read is taken for a change, of nobody knows what.
    """
    if member.protocols == ask.protocols:
        return None
    before, after = (_topics(group, each) for each in (member.protocols, ask.protocols))
    if before is None or after is None:
        return NO_NEWS
    return None if before == after else subscription_news(before, after)


def _topics(group: ClassicGroup, protocols: tuple[tuple[str, bytes], ...]) -> frozenset[str] | None:
    """A consumer subscribes to the same topics whichever protocol is chosen."""
    told = read_subscription(protocols[0][1]) if group.protocol_type == PROTOCOL_TYPE else None
    return None if told is None else frozenset(told.topics)


# --- static members


def _replace_static(
    group: ClassicGroup, member: Member, ask: JoinAsk, waiter: Waiter, now_ms: int, *, new_id: str
) -> list[Effect]:
    """The same instance under a new id: the old one is fenced wherever it still speaks."""
    effects = release(member, ErrorCode.FENCED_INSTANCE_ID)
    before, was_leader = dataclasses.replace(member), member.id == group.leader
    group.roster.rename(member, new_id)
    member.seen_ms = now_ms
    news = _news(group, member, ask)
    group.roster.take_over(member, ask)
    member.joining, member.has_synced = waiter, True  # what its old self was to ask for, it is given
    group.note(EventKind.RETURNED, member, now_ms)
    if news is not None and news is not NO_NEWS:
        group.note(EventKind.SUBSCRIPTION_CHANGED, member, now_ms, news)
    if group.state is not GroupState.STABLE or group.roster.elect_protocol() != group.protocol:
        return [*effects, *group.rebalance(now_ms)]
    back = Return(member, before, waiter, was_leader, ask.can_skip_assignment)
    return [*effects, Store(group.generation, back)]


def on_stored(group: ClassicGroup, store: Store, code: ErrorCode, now_ms: int) -> list[Effect]:
    """The group is in the log, or will not be."""
    if store.back is None:
        return group.on_stored(store.generation, code, now_ms)
    return _on_returned(group, store.back, code, now_ms)


def _on_returned(group: ClassicGroup, back: Return, code: ErrorCode, now_ms: int) -> list[Effect]:
    member = back.member
    if member.joining is not back.waiter or group.state is not GroupState.STABLE:
        return []  # it was answered, or has joined the rebalance that began meanwhile
    member.joining, member.seen_ms = None, now_ms
    if code is ErrorCode.NONE:
        return [Reply(back.waiter, _welcomed_back(group, back))]
    _undo(group, back, now_ms)
    return [refuse_join(back.waiter, code, "")]


def _undo(group: ClassicGroup, back: Return, now_ms: int) -> None:
    roster, is_leader = group.roster, group.leader == back.member.id
    roster.drop(back.member)
    roster.add(back.before, roster.protocol_type)
    back.before.seen_ms = now_ms
    if is_leader:
        roster.leader = back.before.id


def _welcomed_back(group: ClassicGroup, back: Return) -> JoinAnswer:
    """An old client that led would assign anew: told its own former id, it acts as a follower."""
    skips = back.was_leader and back.can_skip_assignment
    return JoinAnswer(
        member_id=back.member.id,
        generation=group.generation,
        protocol_type=group.protocol_type,
        protocol=group.protocol,
        leader=back.before.id if back.was_leader and not skips else group.leader or "",
        skip_assignment=skips,
        members=group.roster.roll(group.protocol) if skips else (),
    )
