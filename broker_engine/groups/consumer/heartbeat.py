"""ConsumerGroupHeartbeat: join, stay, leave. One command does all: what the member says is taken in, the group's wish
and target follow it, and the member goes one step towards the target. Answers and refusals are those of Kafka 4.3.
"""

from __future__ import annotations

import dataclasses

from broker_engine.errors import BrokerError, ErrorCode
from broker_engine.groups.consumer.change import Change
from broker_engine.groups.consumer.group import ConsumerGroup
from broker_engine.groups.consumer.member import (
    AWAY_EPOCH,
    JOINING_EPOCH,
    LEAVING_EPOCH,
    ConsumerMember,
    HeartbeatAnswer,
    HeartbeatAsk,
    Standing,
    Subscription,
)
from broker_engine.groups.consumer.partitions import NOTHING_ASSIGNED, is_within, plain
from broker_engine.groups.consumer.regex import check_regex
from broker_engine.groups.consumer.topics import Topics
from broker_engine.groups.timeline import EventKind


def check_ask(ask: HeartbeatAsk, assignors: tuple[str, ...], *, needs_member_id: bool) -> None:
    """BrokerError 42, 112 or 128: what no group could make sense of."""
    if ask.instance_id == "" or ask.rack_id == "":
        raise _invalid("InstanceId can't be empty." if ask.instance_id == "" else "RackId can't be empty.")
    if not ask.member_id and (needs_member_id or ask.epoch != JOINING_EPOCH):
        raise _invalid("MemberId can't be empty.")
    if ask.epoch < AWAY_EPOCH:
        raise _invalid("MemberEpoch is invalid.")
    if ask.epoch == AWAY_EPOCH and ask.instance_id is None:
        raise _invalid("InstanceId can't be null.")
    if ask.epoch == JOINING_EPOCH:
        _check_joining(ask)
    if ask.server_assignor is not None and ask.server_assignor not in assignors:
        text = f"ServerAssignor {ask.server_assignor} is not supported. Supported assignors: {', '.join(assignors)}."
        raise BrokerError(ErrorCode.UNSUPPORTED_ASSIGNOR, text)
    if ask.topic_regex:
        check_regex(ask.topic_regex)


def _check_joining(ask: HeartbeatAsk) -> None:
    if ask.rebalance_timeout_ms == -1:
        raise _invalid("RebalanceTimeoutMs must be provided in first request.")
    if ask.owned is None or ask.owned:
        raise _invalid("TopicPartitions must be empty when (re-)joining.")
    if ask.topic_names is None and ask.topic_regex is None:
        raise _invalid("Either SubscribedTopicNames or SubscribedTopicRegex must be non-null when (re-)joining.")


def quick_answer(group: ConsumerGroup, ask: HeartbeatAsk, topics: Topics, now_ms: int) -> HeartbeatAnswer | None:
    """Of a member that has nothing new, in a group that has nothing new for it: nearly every heartbeat. No draft."""
    member = group.members.get(ask.member_id)
    if member is None or ask.epoch != member.standing.epoch or not member.is_reconciled(group.epoch):
        return None
    said = member.subscription
    if (
        group.epoch != group.assignment_epoch
        or group.topics_seen is not topics.version
        or ask.epoch <= JOINING_EPOCH
        or said.classic is not None
        or (ask.instance_id != said.instance_id and ask.instance_id is not None)
        or (ask.topic_names is not None and ask.topic_names != said.topic_names)
        or (ask.topic_regex is not None and (ask.topic_regex or None) != said.topic_regex)
        or (ask.server_assignor is not None and ask.server_assignor != said.server_assignor)
        or (ask.rack_id is not None and ask.rack_id != said.rack_id)
        or (ask.rebalance_timeout_ms not in (-1, said.rebalance_timeout_ms))
        or ask.client_id != said.client_id
        or ask.client_host != said.client_host
    ):
        return None
    member.seen_ms = now_ms
    assignment = plain(member.standing.assigned) if ask.is_full else None
    return HeartbeatAnswer(member.id, ask.epoch, assignment, group.settings.heartbeat_interval_ms)


def heartbeat(change: Change, ask: HeartbeatAsk) -> HeartbeatAnswer:
    """Join or stay. `ask.member_id` is set: a version that has the broker make ids has made one."""
    group = change.group
    if len(group.members) >= group.settings.size_max and ask.member_id not in group.members:
        text = f"The consumer group has reached its maximum capacity of {group.settings.size_max} members."
        raise BrokerError(ErrorCode.GROUP_MAX_SIZE_REACHED, text)
    is_new = ask.epoch == JOINING_EPOCH and group.static_member(ask.instance_id) is None
    is_new = is_new and ask.member_id not in group.members
    member = _found(change, ask)
    before = plain(member.standing.assigned)
    is_changed = change.put_subscription(ask.member_id, _subscribed(member.subscription, ask))
    group.members[ask.member_id].seen_ms = change.now.ms
    if is_new:
        change.note(EventKind.JOINED, group.members[ask.member_id])
    elif is_changed:
        change.note_wish(group.members[ask.member_id], member.subscription)
    change.refresh(is_changed=is_changed)
    change.assign_if_due()
    change.reconcile(ask.member_id, ask.owned)
    change.settle()
    standing = group.members[ask.member_id].standing
    after = plain(standing.assigned)
    assignment = after if ask.is_full or after != before else None
    return HeartbeatAnswer(ask.member_id, standing.epoch, assignment, group.settings.heartbeat_interval_ms)


def leave(change: Change, ask: HeartbeatAsk) -> HeartbeatAnswer:
    """For good, or (a static member) for a while: its place is kept for a session. Whether that was the last member
    that speaks the consumer protocol is for migration.py.
    """
    member = change.group.identified(ask.member_id, ask.instance_id)
    if ask.epoch == AWAY_EPOCH:
        gone = dataclasses.replace(member.standing, epoch=AWAY_EPOCH, revoking=NOTHING_ASSIGNED)
        change.put_standing(member.id, gone)
        change.group.members[member.id].deadline_ms = None
    else:
        change.depart([member], EventKind.LEFT)
    return HeartbeatAnswer(ask.member_id, ask.epoch)


def is_leaving(ask: HeartbeatAsk) -> bool:
    return ask.epoch in (LEAVING_EPOCH, AWAY_EPOCH)


def on_time(change: Change) -> None:
    """Whoever has been silent for its session, or has not given up partitions in its time, is out."""
    group, now_ms = change.group, change.now.ms
    late = [member for member in group.members.values() if group.deadline_ms(member) <= now_ms]
    if late:
        change.depart(late, EventKind.TIMED_OUT)
    change.assign_if_due()
    change.settle()


# --- who speaks


def _found(change: Change, ask: HeartbeatAsk) -> ConsumerMember:
    group = change.group
    if ask.epoch != JOINING_EPOCH:
        member = group.identified(ask.member_id, ask.instance_id)
        _check_epoch(member, ask)
        return member
    existing = group.static_member(ask.instance_id)
    if existing is not None and existing.id != ask.member_id:
        return _taken_over(change, existing, ask)
    member = group.members.get(ask.member_id, ConsumerMember(id=ask.member_id, seen_ms=change.now.ms))
    if member.standing.epoch != JOINING_EPOCH and ask.member_id in group.members:
        # It lost its epoch and gave up everything that it held, so its partitions are free, for itself first.
        change.put_standing(member.id, Standing())
        member = group.members[member.id]
    return member


def _taken_over(change: Change, existing: ConsumerMember, ask: HeartbeatAsk) -> ConsumerMember:
    if not existing.is_classic and existing.epoch != AWAY_EPOCH:
        text = (
            f"Static member {ask.member_id} with instance id {ask.instance_id} cannot join the group because the "
            f"instance id is owned by {existing.id} member."
        )
        raise BrokerError(ErrorCode.UNRELEASED_INSTANCE_ID, text)
    change.replace(existing, ask.member_id)
    taken = change.group.members[ask.member_id]
    change.note(EventKind.RETURNED, taken)
    return taken


def _check_epoch(member: ConsumerMember, ask: HeartbeatAsk) -> None:
    standing = member.standing
    if ask.epoch == standing.epoch:
        return
    # The answer with the newer epoch may have been lost: then it holds no more than it was given.
    is_behind = ask.epoch == standing.previous_epoch and ask.epoch < standing.epoch
    if is_behind and ask.owned is not None and is_within(ask.owned, standing.assigned):
        return
    which = "greater" if ask.epoch > standing.epoch else "smaller"
    text = (
        f"The consumer group member has a {which} member epoch ({ask.epoch}) than the one known by the group "
        f"coordinator ({standing.epoch}). The member must abandon all its partitions and rejoin."
    )
    raise BrokerError(ErrorCode.FENCED_MEMBER_EPOCH, text)


def _subscribed(before: Subscription, ask: HeartbeatAsk) -> Subscription:
    return Subscription(
        instance_id=before.instance_id if ask.instance_id is None else ask.instance_id,
        rack_id=before.rack_id if ask.rack_id is None else ask.rack_id,
        client_id=ask.client_id,
        client_host=ask.client_host,
        topic_names=before.topic_names if ask.topic_names is None else ask.topic_names,
        topic_regex=before.topic_regex if ask.topic_regex is None else ask.topic_regex or None,
        rebalance_timeout_ms=(
            before.rebalance_timeout_ms if ask.rebalance_timeout_ms == -1 else ask.rebalance_timeout_ms
        ),
        server_assignor=before.server_assignor if ask.server_assignor is None else ask.server_assignor,
    )


def _invalid(text: str) -> BrokerError:
    return BrokerError(ErrorCode.INVALID_REQUEST, text)
