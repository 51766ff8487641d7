"""From the classic protocol to the consumer protocol and back, while members go on: by the first heartbeat of a member
that speaks the new one, and when the last such member has gone. Pure; the shell writes what is told here and puts the
new group in the old one's place.
"""

from __future__ import annotations

from broker_engine.errors import BrokerError, ErrorCode
from broker_engine.groups.classic import ClassicGroup
from broker_engine.groups.consumer.change import Change, Now
from broker_engine.groups.consumer.classic_members import as_names, as_partitions
from broker_engine.groups.consumer.group import ConsumerGroup
from broker_engine.groups.consumer.member import ClassicFacts, ConsumerMember, Standing, Subscription
from broker_engine.groups.consumer.records import (
    GROUP_EPOCH,
    STANDING,
    SUBSCRIPTION,
    TARGET,
    TARGET_EPOCH,
    ConsumerRecord,
    GroupEpoch,
    Key,
    TargetEpoch,
)
from broker_engine.groups.consumer.topics import Topics
from broker_engine.groups.consumer_protocol import (
    PROTOCOL_TYPE,
    read_assignment,
    read_subscription,
    version_of,
    write_assignment,
)
from broker_engine.groups.member import Member
from broker_engine.groups.settings import ConsumerSettings, GroupSettings
from broker_engine.groups.timeline import EventKind


def to_consumer(
    group: ClassicGroup, settings: ConsumerSettings, topics: Topics, now: Now
) -> tuple[ConsumerGroup, list[ConsumerRecord]]:
    """The same group with the same members and their partitions, each at the generation as its epoch. BrokerError 69
    where the policy or a member's bytes do not allow it.
    """
    _check_upgrade(group, settings)
    new = ConsumerGroup(group.name, settings)
    new.timeline = group.timeline
    records = [ConsumerRecord(Key(GROUP_EPOCH, group.name), GroupEpoch(max(group.generation, 1)))]
    for member in group.members.values():
        records += _member_records(group, member, topics)
    records.append(ConsumerRecord(Key(TARGET_EPOCH, group.name), TargetEpoch(max(group.generation, 1), now.wall_ms)))
    for record in records:
        new.replay(record, now.ms)
    for member in group.members.values():
        new.members[member.id].seen_ms = member.seen_ms
    new.timeline.note(EventKind.CONVERTED, now.ms, new.epoch)
    return new, records


def _check_upgrade(group: ClassicGroup, settings: ConsumerSettings) -> None:
    if not group.members:
        return
    if not settings.can_upgrade or group.protocol_type != PROTOCOL_TYPE or len(group.members) > settings.size_max:
        raise BrokerError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group.name} is not a consumer group.")


def _member_records(group: ClassicGroup, member: Member, topics: Topics) -> list[ConsumerRecord]:
    protocol = group.protocol or member.protocol_names[0]
    said = read_subscription(member.metadata_of(protocol))
    assigned = read_assignment(member.assignment)
    if said is None or assigned is None:
        text = f"Cannot upgrade the classic group {group.name}: a member's embedded consumer protocol is malformed."
        raise BrokerError(ErrorCode.GROUP_ID_NOT_FOUND, text)
    # The chosen protocol first: the broker goes by the first one from now on.
    protocols = sorted(member.protocols, key=lambda each: each[0] != protocol)
    subscription = Subscription(
        instance_id=member.instance_id,
        rack_id=said.rack_id,
        client_id=member.client_id,
        client_host=member.client_host,
        topic_names=frozenset(topics.physical(name) for name in said.topics),
        rebalance_timeout_ms=member.rebalance_timeout_ms,
        classic=ClassicFacts(member.session_timeout_ms, tuple(protocols)),
    )
    partitions = as_partitions(assigned, topics)
    epoch = max(group.generation, 1)
    standing = Standing(
        epoch=epoch,
        previous_epoch=epoch,
        assigned={each: dict.fromkeys(sorted(partitions[each]), epoch) for each in sorted(partitions)},
    )
    values = ((SUBSCRIPTION, subscription), (TARGET, partitions), (STANDING, standing))
    return [ConsumerRecord(Key(number, group.name, member.id), value) for number, value in values]


def is_downgrade_due(group: ConsumerGroup, settings: GroupSettings) -> bool:
    """Nobody is left who speaks the consumer protocol, and somebody who speaks the classic one."""
    if not group.members or not all(member.is_classic for member in group.members.values()):
        return False
    return settings.consumer.can_downgrade and len(group.members) <= settings.size_max


def to_classic(change: Change, settings: GroupSettings) -> ClassicGroup:
    """The same members with what they may use. The shell lets them rebalance: what the last consumer held is free.

    The generation is the epoch from before its departure: the later one was told to nobody, so that who heartbeats or
    commits would be refused, not called.
    """
    group, now = change.group, change.now
    new = ClassicGroup(group.name, settings, state_since_ms=now.wall_ms)
    new.timeline = group.timeline
    members = [_classic_member(member, change.topics, now) for member in group.members.values()]
    new.adopt(members, change.epoch_before)
    new.timeline.note(EventKind.CONVERTED, now.ms, new.generation)
    return new


def _classic_member(member: ConsumerMember, topics: Topics, now: Now) -> Member:
    subscription, facts = member.subscription, member.subscription.classic
    assert facts is not None
    return Member(
        id=member.id,
        instance_id=subscription.instance_id,
        client_id=subscription.client_id,
        client_host=subscription.client_host,
        session_timeout_ms=facts.session_timeout_ms,
        rebalance_timeout_ms=subscription.rebalance_timeout_ms,
        protocols=facts.protocols,
        assignment=write_assignment(as_names(member.standing, topics), version_of(facts.protocols[0][1])),
        seen_ms=now.ms,
        has_synced=True,
    )
