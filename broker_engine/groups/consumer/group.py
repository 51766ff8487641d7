"""A group of the consumer protocol (KIP-848), pure: what the log says of it, and what follows from that.

`replay` alone changes it, live and when it is loaded; commands (change.py, heartbeat.py) work on a draft and emit
records. An epoch numbers what the group wants (`epoch`), what was assigned for it (`assignment_epoch`), and how far
each member has come. Memory's own are only times: when members were heard, and when the last target was made.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from uuid import UUID

from broker_engine.errors import BrokerError, ErrorCode
from broker_engine.groups.consumer.member import ConsumerMember, MemberState, Standing, Subscription
from broker_engine.groups.consumer.partitions import Assigned, Partitions
from broker_engine.groups.consumer.records import (
    GROUP_EPOCH,
    REGEX,
    STANDING,
    SUBSCRIPTION,
    TARGET,
    TARGET_EPOCH,
    ConsumerRecord,
    GroupEpoch,
    Key,
    Regex,
    TargetEpoch,
)
from broker_engine.groups.settings import ConsumerSettings
from broker_engine.groups.states import GroupState
from broker_engine.groups.timeline import Owners, Timeline

FIRST_EPOCH = 1
"""Nobody is ever told this one: the first member's coming makes it 2, as in Kafka 4.3."""


class ConsumerGroup:
    def __init__(self, name: str, settings: ConsumerSettings) -> None:
        self.name = name
        self.settings = settings
        self.epoch = FIRST_EPOCH
        self.metadata_hash = 0
        self.assignment_epoch = FIRST_EPOCH
        self.members: dict[str, ConsumerMember] = {}
        self.targets: dict[str, Partitions] = {}
        self.regexes: dict[str, Regex] = {}
        self.timeline = Timeline()
        self.assigned_ms: int | None = None
        """When the last target was made here."""
        self.topics_seen: object = None
        """`Topics.version` when the group last looked."""
        self._static: dict[str, str] = {}
        self._owners: dict[UUID, dict[int, str]] = {}
        """Who holds each partition, also while it is to give it up."""

    def draft(self) -> ConsumerGroup:
        """A copy to work on: it takes this one's place once its records are in the log."""
        copy = ConsumerGroup(self.name, self.settings)
        copy.epoch, copy.metadata_hash, copy.assignment_epoch = self.epoch, self.metadata_hash, self.assignment_epoch
        copy.members, copy.targets = dict(self.members), dict(self.targets)
        copy.regexes, copy.timeline = dict(self.regexes), self.timeline
        copy.assigned_ms, copy.topics_seen = self.assigned_ms, self.topics_seen
        copy._static = dict(self._static)
        copy._owners = {topic_id: dict(owners) for topic_id, owners in self._owners.items()}
        return copy

    # --- questions

    @property
    def state(self) -> GroupState:
        if not self.members:
            return GroupState.EMPTY
        if self.epoch > self.assignment_epoch:
            return GroupState.ASSIGNING
        is_reached = all(member.is_reconciled(self.assignment_epoch) for member in self.members.values())
        return GroupState.STABLE if is_reached else GroupState.RECONCILING

    @property
    def generation(self) -> int:
        return self.epoch

    @property
    def protocol_type(self) -> str:
        return "consumer"

    def member(self, member_id: str) -> ConsumerMember:
        """BrokerError 25."""
        member = self.members.get(member_id)
        if member is None:
            raise BrokerError(ErrorCode.UNKNOWN_MEMBER_ID, f"Member {member_id} is not a member of the group.")
        return member

    def static_member(self, instance_id: str | None) -> ConsumerMember | None:
        member_id = None if instance_id is None else self._static.get(instance_id)
        return None if member_id is None else self.members.get(member_id)

    def identified(self, member_id: str, instance_id: str | None) -> ConsumerMember:
        """BrokerError 25, or 82 where the instance is another member by now."""
        if instance_id is None:
            return self.member(member_id)
        member = self.static_member(instance_id)
        if member is None:
            raise BrokerError(ErrorCode.UNKNOWN_MEMBER_ID, f"Instance id {instance_id} is unknown.")
        if member.id != member_id:
            text = f"Static member {member_id} with instance id {instance_id} was fenced by member {member.id}."
            raise BrokerError(ErrorCode.FENCED_INSTANCE_ID, text)
        return member

    def owner(self, topic_id: UUID, index: int) -> str | None:
        return self._owners.get(topic_id, {}).get(index)

    def target_of(self, member_id: str) -> Partitions:
        return self.targets.get(member_id, {})

    def topics_of(self, subscription: Subscription) -> frozenset[str]:
        """What it asks for by name and what its regular expression matched."""
        found = self.regexes.get(subscription.topic_regex or "")
        return subscription.topic_names if found is None else subscription.topic_names.union(found.topics)

    def subscribed_topics(self) -> frozenset[str]:
        return frozenset[str]().union(*(self.topics_of(each.subscription) for each in self.members.values()))

    def patterns_due(self, topics_version: object) -> frozenset[str]:
        """Those in use whose matches are not known: all where the topics have changed, else the new ones."""
        used = frozenset(each.subscription.topic_regex or "" for each in self.members.values()) - {""}
        return used - self.regexes.keys() if self.topics_seen is topics_version else used

    def preferred_assignor(self) -> str:
        """What most members ask for among those that ask; the earlier in the broker's list where as many do."""
        names = self.settings.assignors
        asked = [member.subscription.server_assignor for member in self.members.values()]
        return max(names, key=lambda name: (asked.count(name), -names.index(name)))

    def owners(self) -> Owners:
        """For the timeline: a static member goes by its instance."""
        return {
            (topic_id, index): member.instance_id or member.id
            for member in self.members.values()
            for topic_id, indexes in member.standing.assigned.items()
            for index in indexes
        }

    # --- time

    def session_timeout_ms(self, member: ConsumerMember) -> int:
        classic = member.subscription.classic
        return self.settings.session_timeout_ms if classic is None else classic.session_timeout_ms

    def deadline_ms(self, member: ConsumerMember) -> int:
        silence_ms = member.seen_ms + self.session_timeout_ms(member)
        return silence_ms if member.deadline_ms is None else min(silence_ms, member.deadline_ms)

    def is_target_due(self, now_ms: int) -> bool:
        if self.epoch <= self.assignment_epoch:
            return False
        return self.assigned_ms is None or now_ms >= self.assigned_ms + self.settings.assignment_interval_ms

    @property
    def next_deadline_ms(self) -> int | None:
        deadlines = [self.deadline_ms(member) for member in self.members.values()]
        if deadlines and self.epoch > self.assignment_epoch and self.assigned_ms is not None:
            deadlines.append(self.assigned_ms + self.settings.assignment_interval_ms)
        return min(deadlines, default=None)

    def begin_here(self, now_ms: int) -> None:
        """It was loaded: everybody has a session from now on to show that it lives, and its time to give up."""
        for member in self.members.values():
            member.seen_ms, member.deadline_ms = now_ms, None
            if member.standing.state is MemberState.UNREVOKED_PARTITIONS:
                member.deadline_ms = now_ms + member.subscription.rebalance_timeout_ms

    # --- what the log says

    def replay(self, record: ConsumerRecord, now_ms: int) -> None:
        _REPLAY[record.key.number](self, record.key.name, record.value, now_ms)

    def _replay_epoch(self, _name: str, value: GroupEpoch | None, _now_ms: int) -> None:
        if value is not None:
            self.epoch, self.metadata_hash = value.epoch, value.metadata_hash

    def _replay_target_epoch(self, _name: str, value: TargetEpoch | None, _now_ms: int) -> None:
        if value is not None:
            self.assignment_epoch = value.epoch

    def _replay_target(self, name: str, value: Partitions | None, _now_ms: int) -> None:
        if value is None:
            self.targets.pop(name, None)
        else:
            self.targets[name] = value

    def _replay_regex(self, name: str, value: Regex | None, _now_ms: int) -> None:
        if value is None:
            self.regexes.pop(name, None)
        else:
            self.regexes[name] = value

    def _replay_subscription(self, name: str, value: Subscription | None, now_ms: int) -> None:
        before = self.members.pop(name, None) if value is None else self.members.get(name)
        if before is not None and self._static.get(before.instance_id or "") == name:
            del self._static[before.instance_id or ""]
        if value is None:
            self._release(name, None if before is None else before.standing)
            return
        if value.instance_id is not None:
            self._static[value.instance_id] = name
        self.members[name] = _changed(before, name, now_ms, subscription=value)

    def _replay_standing(self, name: str, value: Standing | None, now_ms: int) -> None:
        before = self.members.get(name)
        standing = Standing() if value is None else value
        self._release(name, None if before is None else before.standing)
        if before is None and value is None:
            return
        self.members[name] = _changed(before, name, now_ms, standing=standing)
        self._take(name, standing.assigned)
        self._take(name, standing.revoking)

    def _release(self, name: str, standing: Standing | None) -> None:
        for part in () if standing is None else (standing.assigned, standing.revoking):
            for topic_id, indexes in part.items():
                owners = self._owners.get(topic_id, {})
                for index in indexes:
                    if owners.get(index) == name:
                        del owners[index]

    def _take(self, name: str, assigned: Assigned) -> None:
        for topic_id, indexes in assigned.items():
            owners = self._owners.setdefault(topic_id, {})
            for index in indexes:
                # A log that Kafka wrote may hold what it forgives; here the later word counts.
                owners[index] = name

    def removal(self) -> list[ConsumerRecord]:
        """Tombstones for everything, the group itself last."""
        names = sorted(self.members)
        keys = [Key(number, self.name, each) for number in (STANDING, TARGET, SUBSCRIPTION) for each in names]
        keys += [Key(REGEX, self.name, each) for each in sorted(self.regexes)]
        keys += [Key(TARGET_EPOCH, self.name), Key(GROUP_EPOCH, self.name)]
        return [ConsumerRecord(key, None) for key in keys]


def _changed(before: ConsumerMember | None, name: str, now_ms: int, **changes: Any) -> ConsumerMember:
    """A new object: a draft shares its members with the group that it was made from."""
    if before is None:
        return ConsumerMember(id=name, seen_ms=now_ms, **changes)
    kept = {"subscription": before.subscription, "standing": before.standing}
    return ConsumerMember(id=name, seen_ms=before.seen_ms, deadline_ms=before.deadline_ms, **{**kept, **changes})


_REPLAY: dict[int, Callable[[ConsumerGroup, str, Any, int], None]] = {
    GROUP_EPOCH: ConsumerGroup._replay_epoch,
    SUBSCRIPTION: ConsumerGroup._replay_subscription,
    TARGET_EPOCH: ConsumerGroup._replay_target_epoch,
    TARGET: ConsumerGroup._replay_target,
    STANDING: ConsumerGroup._replay_standing,
    REGEX: ConsumerGroup._replay_regex,
}
