"""Members that speak the classic protocol inside a group of the consumer protocol, while clients are being updated.

JoinGroup takes such a member one step towards its target and answers at once; SyncGroup tells it what it may use, in
the client's own bytes; Heartbeat calls it to join again whenever there is a further step. No member leads: the broker
assigns.
"""

from __future__ import annotations

from collections.abc import Mapping
from uuid import UUID

from broker_engine.errors import BrokerError, ErrorCode
from broker_engine.groups.consumer.change import Change
from broker_engine.groups.consumer.group import ConsumerGroup
from broker_engine.groups.consumer.member import (
    ClassicFacts,
    ConsumerMember,
    MemberState,
    Standing,
    Subscription,
)
from broker_engine.groups.consumer.partitions import Partitions
from broker_engine.groups.consumer.topics import Topics
from broker_engine.groups.consumer_protocol import (
    PROTOCOL_TYPE,
    ProtocolSubscription,
    by_topic,
    read_subscription,
    version_of,
    write_assignment,
)
from broker_engine.groups.effects import JoinAnswer, SyncAnswer
from broker_engine.groups.member import JoinAsk, SyncAsk
from broker_engine.groups.timeline import EventKind


def join(change: Change, ask: JoinAsk, new_id: str) -> JoinAnswer:
    """`new_id` is for a member that has none yet. BrokerError 23, 25, 79, 81, 82."""
    group = change.group
    member_id = ask.member_id or new_id
    if len(group.members) >= group.settings.size_max and member_id not in group.members:
        raise BrokerError(ErrorCode.GROUP_MAX_SIZE_REACHED)
    said = _said(group, ask, member_id)
    if not ask.member_id and ask.instance_id is None and ask.needs_known_id:
        return JoinAnswer(ErrorCode.MEMBER_ID_REQUIRED, member_id=member_id)
    _identify(change, ask, member_id)
    known = group.members.get(member_id)
    is_changed = change.put_subscription(member_id, _subscription(ask, said, change.topics))
    joined = group.members[member_id]
    joined.seen_ms = change.now.ms
    # Where it was called to join it has done so; now it has as long again to ask for its part.
    joined.deadline_ms = change.now.ms + ask.rebalance_timeout_ms
    if known is None:
        change.note(EventKind.JOINED, joined)
    elif is_changed:
        change.note_wish(joined, known.subscription)
    change.refresh(is_changed=is_changed)
    change.assign_if_due()
    change.reconcile(member_id, as_partitions(by_topic(said.owned_partitions), change.topics))
    change.settle()
    return JoinAnswer(
        member_id=member_id,
        generation=group.members[member_id].epoch,
        protocol_type=PROTOCOL_TYPE,
        protocol=ask.protocols[0][0],
    )


def sync(group: ConsumerGroup, ask: SyncAsk, topics: Topics, now_ms: int) -> SyncAnswer:
    """BrokerError 22, 23, 25, 27, 82."""
    member = _classic(group, ask.member_id, ask.instance_id, ask.generation)
    facts = member.subscription.classic
    assert facts is not None
    name, metadata = facts.protocols[0]
    if ask.protocol is not None and ask.protocol != (PROTOCOL_TYPE, name):
        raise BrokerError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
    is_asked_to_give_up = member.standing.state is MemberState.UNREVOKED_PARTITIONS
    if group.epoch > member.epoch and not is_asked_to_give_up:
        _call(member, now_ms)
        raise BrokerError(ErrorCode.REBALANCE_IN_PROGRESS)
    member.seen_ms, member.deadline_ms = now_ms, None
    assignment = write_assignment(as_names(member.standing, topics), version_of(metadata))
    return SyncAnswer(ErrorCode.NONE, PROTOCOL_TYPE, name, assignment)


def heartbeat(group: ConsumerGroup, member_id: str, instance_id: str | None, generation: int, now_ms: int) -> ErrorCode:
    """BrokerError 22, 25, 82. Answers 27 where there is a further step: it has its rebalance time to come for it."""
    member = _classic(group, member_id, instance_id, generation)
    member.seen_ms = now_ms
    if not _has_a_step(group, member):
        return ErrorCode.NONE
    _call(member, now_ms)
    return ErrorCode.REBALANCE_IN_PROGRESS


def leave(change: Change, member_id: str, instance_id: str | None) -> None:
    """A static member may be named by its instance alone. BrokerError 25, 82."""
    known = change.group.static_member(instance_id)
    if known is not None and not member_id:
        member_id = known.id
    member = change.group.identified(member_id, instance_id)
    if not member.is_classic:
        raise BrokerError(ErrorCode.UNKNOWN_MEMBER_ID)
    change.depart([member], EventKind.LEFT)


# --- names there, ids here


def as_partitions(named: Mapping[str, tuple[int, ...]], topics: Topics) -> Partitions:
    """Topics that are not there any more are left out: nobody owns them."""
    found: dict[UUID, frozenset[int]] = {}
    for short_name, indexes in named.items():
        topic = topics.find(topics.physical(short_name))
        if topic is not None and indexes:
            found[topic.id] = frozenset(indexes)
    return found


def as_names(standing: Standing, topics: Topics) -> dict[str, list[int]]:
    found = {topic_id: topics.find_id(topic_id) for topic_id in standing.assigned}
    return {topics.short(topic.name): sorted(standing.assigned[each]) for each, topic in found.items() if topic}


# --- checks


def _said(group: ConsumerGroup, ask: JoinAsk, member_id: str) -> ProtocolSubscription:
    """BrokerError 23 where no one protocol is shared by it and all other classic members, or its bytes are none of
    Kafka's. By twos is not enough: they may have to go on as a classic group, which has one protocol.
    """
    others = [member for member in group.members.values() if member.id != member_id and member.is_classic]
    shared = {name for name, _ in ask.protocols}.intersection(*(_protocol_names(other) for other in others))
    said = read_subscription(ask.protocols[0][1]) if ask.protocols else None
    if ask.protocol_type != PROTOCOL_TYPE or said is None or not shared:
        raise BrokerError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
    return said


def _protocol_names(member: ConsumerMember) -> set[str]:
    facts = member.subscription.classic
    return set() if facts is None else {name for name, _ in facts.protocols}


def _identify(change: Change, ask: JoinAsk, member_id: str) -> None:
    """BrokerError 25, 82. A static member without an id takes the place of whoever has its name."""
    existing = change.group.static_member(ask.instance_id)
    if ask.instance_id is not None and ask.member_id:
        change.group.identified(ask.member_id, ask.instance_id)
    elif existing is not None:
        change.replace(existing, member_id)
        change.note(EventKind.RETURNED, change.group.members[member_id])


def _subscription(ask: JoinAsk, said: ProtocolSubscription, topics: Topics) -> Subscription:
    return Subscription(
        instance_id=ask.instance_id,
        rack_id=said.rack_id,
        client_id=ask.client_id,
        client_host=ask.client_host,
        topic_names=frozenset(topics.physical(name) for name in said.topics),
        rebalance_timeout_ms=ask.rebalance_timeout_ms,
        classic=ClassicFacts(ask.session_timeout_ms, ask.protocols),
    )


def _classic(group: ConsumerGroup, member_id: str, instance_id: str | None, generation: int) -> ConsumerMember:
    member = group.identified(member_id, instance_id)
    if not member.is_classic:
        raise BrokerError(ErrorCode.UNKNOWN_MEMBER_ID)
    if member.epoch != generation:
        raise BrokerError(ErrorCode.ILLEGAL_GENERATION)
    return member


def _has_a_step(group: ConsumerGroup, member: ConsumerMember) -> bool:
    state = member.standing.state
    if member.epoch < group.epoch or state is MemberState.UNREVOKED_PARTITIONS:
        return True
    return state is MemberState.UNRELEASED_PARTITIONS and not _is_waiting(group, member)


def _is_waiting(group: ConsumerGroup, member: ConsumerMember) -> bool:
    """Something that it is to have is with somebody else."""
    target = group.target_of(member.id)
    return any(group.owner(each, index) not in (None, member.id) for each in target for index in target[each])


def _call(member: ConsumerMember, now_ms: int) -> None:
    if member.deadline_ms is None:
        member.deadline_ms = now_ms + member.subscription.rebalance_timeout_ms
