"""One command on a group of the consumer protocol: it works on a draft, and whatever it changes is a record first.

The shell writes the records, then the draft takes the group's place, then the answer goes out when they are
acknowledged. If they cannot be written the draft is forgotten, and nothing has happened.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from broker_engine.groups.consumer.assignors import ASSIGNORS, MemberSpec, TopicSpec
from broker_engine.groups.consumer.group import ConsumerGroup
from broker_engine.groups.consumer.member import ConsumerMember, MemberState, Standing, Subscription
from broker_engine.groups.consumer.partitions import Partitions
from broker_engine.groups.consumer.reconcile import Goal, next_standing
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
from broker_engine.groups.consumer.regex import Matched, match_all
from broker_engine.groups.consumer.topics import Topics, metadata_hash
from broker_engine.groups.states import GroupState
from broker_engine.groups.timeline import EventKind
from broker_engine.groups.topic_news import NO_NEWS, TopicNews, subscription_news


class Now(NamedTuple):
    ms: int
    """Of the monotonic clock."""
    wall_ms: int


class Change:
    def __init__(self, group: ConsumerGroup, topics: Topics, now: Now, matched: Matched | None = None) -> None:
        """`matched` was found out before, off the loop; what is not in it stays as it was. None: found out here."""
        self.group = group.draft()
        self.epoch_before = group.epoch
        self._matched = matched
        self.topics = topics
        self.now = now
        self.records: list[ConsumerRecord] = []

    def emit(self, number: int, name: str, value: Any) -> None:
        record = ConsumerRecord(Key(number, self.group.name, name), value)
        self.records.append(record)
        self.group.replay(record, self.now.ms)

    def note(self, kind: EventKind, member: ConsumerMember, news: TopicNews = NO_NEWS) -> None:
        client_id = member.subscription.client_id
        self.group.timeline.note(kind, self.now.ms, self.group.epoch, member.id, client_id, news=news)

    def note_wish(self, member: ConsumerMember, before: Subscription) -> None:
        """It asks for other topics than before."""
        names, names_before = member.subscription.topic_names, before.topic_names
        news = subscription_news(*({self.topics.short(name) for name in each} for each in (names_before, names)))
        self.note(EventKind.SUBSCRIPTION_CHANGED, member, news)

    # --- members

    def put_subscription(self, member_id: str, subscription: Subscription) -> bool:
        """True where the group wants something else by it."""
        member = self.group.members.get(member_id)
        before = Subscription() if member is None else member.subscription
        if member is None or subscription != before:
            self.emit(SUBSCRIPTION, member_id, subscription)
        is_same = subscription.topic_names == before.topic_names and subscription.topic_regex == before.topic_regex
        return not is_same

    def put_standing(self, member_id: str, standing: Standing) -> None:
        if self.group.members[member_id].standing != standing:
            self.emit(STANDING, member_id, standing)

    def remove(self, member_id: str) -> None:
        self.emit(STANDING, member_id, None)
        self.emit(TARGET, member_id, None)
        self.emit(SUBSCRIPTION, member_id, None)

    def replace(self, old: ConsumerMember, new_id: str) -> None:
        """A static member under a new id: it takes over what the old one had and was to have."""
        target, subscription = self.group.target_of(old.id), old.subscription
        standing = Standing(state=old.standing.state, assigned=old.standing.assigned, revoking=old.standing.revoking)
        self.remove(old.id)
        self.emit(SUBSCRIPTION, new_id, subscription)
        self.emit(TARGET, new_id, target)
        self.emit(STANDING, new_id, standing)

    def depart(self, members: list[ConsumerMember], kind: EventKind) -> None:
        """They are out of the group, and what they held is free."""
        self._begin_rebalance()
        for member in members:
            self.note(kind, member)
            self.remove(member.id)
        self._resolve_regexes()
        self.bump_epoch()
        if not self.group.members:
            self.group.timeline.settle(self.now.ms, self.group.epoch, {})
            self.group.timeline.watch.seen = None

    # --- what the group wants

    def refresh(self, *, is_changed: bool) -> None:
        """A subscription changed, or topics may have: then the group wants something new."""
        group = self.group
        if not is_changed and group.topics_seen is self.topics.version:
            return
        due = group.patterns_due(self.topics.version)
        has_new_topics = self._resolve_regexes()
        specs = self._topic_specs()
        is_other = metadata_hash(specs.values()) != group.metadata_hash
        self._note_topics(specs.values(), is_other=is_other, is_changed=is_changed)
        if is_changed or has_new_topics or is_other:
            self._begin_rebalance()
            self.bump_epoch()
        is_all_seen = self._matched is None or due <= self._matched.keys()
        group.topics_seen = self.topics.version if is_all_seen else None

    def _note_topics(self, specs: Iterable[TopicSpec], *, is_other: bool, is_changed: bool) -> None:
        timeline = self.group.timeline
        before, now = timeline.watch.seen, {self.topics.short(topic.name): topic for topic in specs}
        known = (before or {}).keys()
        # Without a new subscription a name came by a regular expression, or went: then its topic was made, or deleted.
        names = known & now.keys() if is_changed else now.keys() | {each for each in known if self._is_gone(each)}
        found = timeline.watch.look(now, names)
        if before is None and is_other and not is_changed:
            found = [NO_NEWS]  # the log says that something changed before this coordinator looked
        for news in found:
            timeline.note(EventKind.PARTITIONS_CHANGED, self.now.ms, self.group.epoch, news=news)

    def _is_gone(self, short_name: str) -> bool:
        return self.topics.find(self.topics.physical(short_name)) is None

    def bump_epoch(self) -> None:
        self.emit(GROUP_EPOCH, "", GroupEpoch(self.group.epoch + 1, self._hash()))

    def _hash(self) -> int:
        return metadata_hash(self._topic_specs().values())

    def _topic_specs(self) -> dict[str, TopicSpec]:
        found = {name: self.topics.find(name) for name in sorted(self.group.subscribed_topics())}
        return {name: topic for name, topic in found.items() if topic is not None}

    def _resolve_regexes(self) -> bool:
        """Those in use, against the topics that there are now; True where one matches others than before."""
        used = {member.subscription.topic_regex for member in self.group.members.values()}
        for pattern in sorted(self.group.regexes.keys() - used):
            self.emit(REGEX, pattern, None)
        due = sorted(self.group.patterns_due(self.topics.version))
        return bool([pattern for pattern in due if self._resolve(pattern)])

    def _resolve(self, pattern: str) -> bool:
        """True where it matches others than before. Not matched ahead: it stays as it is until the next heartbeat."""
        matched = match_all([pattern], self.topics.short_names()) if self._matched is None else self._matched
        found = matched.get(pattern)
        if found is None:
            return False
        names = tuple(self.topics.physical(each) for each in found)
        before = self.group.regexes.get(pattern)
        if before is not None and before.topics == names:
            return False
        self.emit(REGEX, pattern, Regex(names, self.topics.number, self.now.wall_ms))
        return True

    # --- who is to have what

    def assign_if_due(self) -> None:
        group = self.group
        if not group.members or not group.is_target_due(self.now.ms):
            return
        specs = {
            member.id: MemberSpec(
                group.topics_of(member.subscription), group.target_of(member.id), member.subscription.instance_id
            )
            for member in group.members.values()
        }
        targets = ASSIGNORS[group.preferred_assignor()](specs, self._topic_specs())
        for member_id in sorted(targets):
            if group.targets.get(member_id) != targets[member_id]:
                self.emit(TARGET, member_id, targets[member_id])
        self.emit(TARGET_EPOCH, "", TargetEpoch(group.epoch, self.now.wall_ms))
        group.assigned_ms = self.now.ms

    def reconcile(self, member_id: str, owned: Partitions | None) -> None:
        """One step of this member towards its target."""
        group = self.group
        member = group.members[member_id]
        if member.is_reconciled(group.assignment_epoch):
            return
        goal = Goal(group.assignment_epoch, group.target_of(member_id))
        standing = next_standing(
            member.standing, goal, owned, lambda topic_id, index: group.owner(topic_id, index) in (None, member_id)
        )
        if standing != member.standing:
            self.emit(STANDING, member_id, standing)
            self._set_revocation_deadline(group.members[member_id])

    def _set_revocation_deadline(self, member: ConsumerMember) -> None:
        if member.is_classic:
            return  # it is called to join again, and has its time for that
        is_asked = member.standing.state is MemberState.UNREVOKED_PARTITIONS
        member.deadline_ms = self.now.ms + member.subscription.rebalance_timeout_ms if is_asked else None

    # --- the timeline

    def _begin_rebalance(self) -> None:
        if not self.group.timeline.is_rebalancing:
            self.group.timeline.begin(self.now.ms, self.group.owners())

    def settle(self) -> None:
        """Called at the end of a command: was it the last one that the group waited for?"""
        timeline = self.group.timeline
        if timeline.is_rebalancing and self.group.state is GroupState.STABLE:
            timeline.settle(self.now.ms, self.group.epoch, self.group.owners())
