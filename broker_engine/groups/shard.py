"""All groups of one partition of `__consumer_offsets`, pure: `replay` alone changes offsets, so that what a restart
reads and what happens live take the same way. A classic group's members live in memory, its generations in the log; of
a group of the consumer protocol everything is in the log.

Names are physical texts. An offset belongs to a topic id: a topic that was deleted and made again has none.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from uuid import UUID

from broker_engine.groups.by_tenant import ByTenant
from broker_engine.groups.classic import ClassicGroup
from broker_engine.groups.consumer.group import ConsumerGroup
from broker_engine.groups.consumer.records import GROUP_EPOCH, ConsumerRecord, Key, encode
from broker_engine.groups.pending_offsets import PendingOffsets
from broker_engine.groups.records import (
    GroupKey,
    GroupRecord,
    OffsetKey,
    OffsetValue,
    UnknownGroupRecord,
    decode_consumer,
    decode_group,
    decode_key,
    decode_offset,
    group_record,
    offset_record,
)
from broker_engine.groups.settings import ConsumerSettings, GroupSettings
from broker_engine.groups.states import GroupState
from broker_engine.groups.stored import group_value, restore_group
from broker_engine.groups.timeline import EventKind

TopicPartition = tuple[str, int]
AnyGroup = ClassicGroup | ConsumerGroup
SettingsOf = Callable[[str], ConsumerSettings]
Subscribed = Callable[[AnyGroup], frozenset[str] | None]
"""The topics that a living group reads, as physical texts; None where its members' bytes do not tell."""

_TIME_MS_MAX = (1 << 63) - 1
"""What a record can say."""


@dataclass(frozen=True, slots=True)
class NewOffset:
    topic: str
    partition: int
    offset: int
    leader_epoch: int
    metadata: str
    topic_id: UUID
    retention_ms: int = -1
    """How long it counts, where the client says so (OffsetCommit up to v4); -1: as long as the broker keeps any."""


class GroupShard:
    def __init__(self, settings: GroupSettings, settings_of: SettingsOf | None = None) -> None:
        """`settings_of` tells a group's own settings for the consumer protocol, where it has some."""
        self.groups = ByTenant[AnyGroup]()
        self.offsets = ByTenant[dict[TopicPartition, OffsetValue]]()
        self.commit_counts: dict[tuple[str, str, int], int] = {}
        """Of each group, topic and partition since this shard was loaded, for telemetry: a rate is made of them."""
        self.pending = PendingOffsets()
        self._commit_counts_under_way = Counter[str]()
        self._settings = settings
        self._settings_of = settings_of or (lambda _name: settings.consumer)

    def group(self, name: str) -> AnyGroup | None:
        return self.groups.get(name)

    def classic_or_new(self, name: str, wall_ms: int) -> ClassicGroup:
        """A group of the other protocol under this name is gone: it was converted, or the log says so."""
        group = self.groups.get(name)
        if not isinstance(group, ClassicGroup):
            group = self.groups[name] = ClassicGroup(name, self._settings, state_since_ms=wall_ms)
        return group

    def new_consumer(self, name: str) -> ConsumerGroup:
        """Not in the shard yet: it is with its first record."""
        return ConsumerGroup(name, self._settings_of(name))

    def forget(self, name: str) -> None:
        """Its removal is in the log."""
        self.groups.pop(name, None)

    def begin_here(self, now_ms: int) -> None:
        """All is read. Whoever is a member has a session from now on to show that it lives."""
        for group in self.groups.values():
            group.begin_here(now_ms)
            if group.members:
                group.timeline.note(EventKind.COORDINATOR_MOVED, now_ms, group.generation)

    def names(self) -> Iterator[str]:
        """Every group, also those that have offsets and never had a member."""
        yield from dict.fromkeys((*self.groups, *self.offsets))

    def names_of(self, tenant: str) -> Iterator[str]:
        yield from dict.fromkeys((*self.groups.names_of(tenant), *self.offsets.names_of(tenant)))

    # --- what the log says

    def replay(self, key: bytes, value: bytes | None, now_ms: int) -> None:
        """UnknownGroupRecord where it is none of ours."""
        decoded = decode_key(key)
        if isinstance(decoded, OffsetKey):
            self._replay_offset(decoded, None if value is None else decode_offset(value))
        elif isinstance(decoded, Key):
            self._replay_consumer(decode_consumer(decoded, value), now_ms)
        else:
            self._replay_group(decoded, value, now_ms)

    def replay_offset(self, key: bytes, value: bytes | None) -> None:
        """What was written here is acknowledged. Groups have changed when it was appended, offsets change now."""
        decoded = decode_key(key)
        if isinstance(decoded, OffsetKey):
            self._replay_offset(decoded, None if value is None else decode_offset(value))

    def replay_in_transaction(self, producer_id: int, key: bytes, value: bytes | None) -> None:
        """A record of a transactional batch: in force when the transaction commits. Only offsets are so written."""
        decoded = decode_key(key)
        if isinstance(decoded, OffsetKey) and value is not None:
            self.pending.add(producer_id, decoded, decode_offset(value))

    def end_transaction(self, producer_id: int, *, is_commit: bool) -> None:
        for key, value in self.pending.end(producer_id, is_commit=is_commit):
            self._set_offset(key, value)

    def _replay_offset(self, key: OffsetKey, value: OffsetValue | None) -> None:
        if value is None:
            self.pending.drop(key)
        else:
            self.pending.supersede(key)
        self._set_offset(key, value)

    def _set_offset(self, key: OffsetKey, value: OffsetValue | None) -> None:
        offsets = self.offsets.setdefault(key.group, {})
        place = (key.group, key.topic, key.partition)
        if value is None:
            offsets.pop((key.topic, key.partition), None)
            self.commit_counts.pop(place, None)
        else:
            offsets[key.topic, key.partition] = value
            self.commit_counts[place] = self.commit_counts.get(place, 0) + 1
        if not offsets:
            del self.offsets[key.group]

    def _replay_group(self, key: GroupKey, value: bytes | None, now_ms: int) -> None:
        if value is not None:
            restore_group(self.classic_or_new(key.group, 0), decode_group(value), now_ms)
        elif isinstance(self.groups.get(key.group), ClassicGroup):
            del self.groups[key.group]

    def _replay_consumer(self, record: ConsumerRecord, now_ms: int) -> None:
        """Compaction may leave a member before its group, or the removal of what is gone: any order is taken."""
        group = self.groups.get(record.key.group)
        if isinstance(group, ConsumerGroup):
            group.replay(record, now_ms)
            if record.key.number == GROUP_EPOCH and record.value is None:
                del self.groups[record.key.group]
        elif record.value is not None:
            group = self.groups[record.key.group] = self.new_consumer(record.key.group)
            group.replay(record, now_ms)

    # --- what is to be written

    def begin_commit(self, name: str) -> Callable[[], None]:
        """Offsets of this group go to the log; to be called once it is settled whether they are there. Until then
        nothing of the group expires: the commit is not seen yet, and its own removal would come behind it.
        """
        self._commit_counts_under_way[name] += 1

        def end() -> None:
            self._commit_counts_under_way[name] -= 1
            if not self._commit_counts_under_way[name]:
                del self._commit_counts_under_way[name]

        return end

    def offset_records(self, group: str, offsets: Iterable[NewOffset], wall_ms: int) -> list[GroupRecord]:
        return [
            offset_record(
                OffsetKey(group=group, topic=new.topic, partition=new.partition),
                OffsetValue(
                    offset=new.offset,
                    leader_epoch=new.leader_epoch,
                    metadata=new.metadata,
                    commit_timestamp=wall_ms,
                    expire_timestamp=min(wall_ms + new.retention_ms, _TIME_MS_MAX) if new.retention_ms >= 0 else -1,
                    topic_id=new.topic_id,
                ),
            )
            for new in offsets
        ]

    def stored_group(self, group: ClassicGroup, wall_ms: int) -> GroupRecord:
        group.state_since_ms = wall_ms
        return group_record(group.name, group_value(group))

    def removal(self, name: str) -> list[GroupRecord]:
        """Everything of a group, the group itself last."""
        records = self.offset_removals(name, dict.fromkeys([*self.committed(name), *self.pending.places_of(name)]))
        return [*records, *self.group_removal(name)]

    def group_removal(self, name: str) -> list[GroupRecord]:
        group = self.groups.get(name)
        if isinstance(group, ConsumerGroup):
            return [GroupRecord(*encode(record)) for record in group.removal()]
        return [] if group is None else [group_record(name, None)]

    def offset_removals(self, name: str, places: Iterable[TopicPartition]) -> list[GroupRecord]:
        known = self.offsets.get(name, {})
        return [
            offset_record(OffsetKey(group=name, topic=topic, partition=partition), None)
            for topic, partition in places
            if (topic, partition) in known or self.pending.is_pending(name, topic, partition)
        ]

    def committed(self, name: str) -> Mapping[TopicPartition, OffsetValue]:
        return self.offsets.get(name, {})

    # --- expiry

    def expired(self, wall_ms: int, retention_ms: int, subscribed: Subscribed) -> tuple[list[GroupRecord], list[str]]:
        """Records that remove what is too old, and the groups that go with it, by Kafka's rule: offsets of topics that
        a living group reads stay; other topics' go by the time of their commit, an empty classic group's by the time
        that it has been empty, and a group that is empty and has no offset left goes too.
        """
        records: list[GroupRecord] = []
        gone: list[str] = []
        for name in [each for each in self.names() if each not in self._commit_counts_under_way]:
            old = self._expired_places(name, wall_ms, retention_ms, subscribed)
            records += self.offset_removals(name, old)
            if self._is_over(name, len(old), wall_ms - retention_ms):
                records += self.group_removal(name)
                gone.append(name)
        return records, gone

    def _expired_places(
        self, name: str, wall_ms: int, retention_ms: int, subscribed: Subscribed
    ) -> list[TopicPartition]:
        group = self.groups.get(name)
        since_ms = group.state_since_ms if isinstance(group, ClassicGroup) and not group.members else -1
        topics = frozenset[str]() if group is None or not group.members else subscribed(group)
        if topics is None:
            return []
        return [
            place
            for place, value in self.offsets.get(name, {}).items()
            if _expires_ms(value, since_ms, retention_ms) <= wall_ms
            and place[0] not in topics
            and not self.pending.is_pending(name, *place)
        ]

    def _is_over(self, name: str, expired_count: int, before_ms: int) -> bool:
        group = self.groups.get(name)
        if group is None or group.state is not GroupState.EMPTY or self.pending.places_of(name):
            return False
        is_old = not isinstance(group, ClassicGroup) or group.state_since_ms <= before_ms
        return is_old and expired_count == len(self.offsets.get(name, {}))


def _expires_ms(value: OffsetValue, empty_since_ms: int, retention_ms: int) -> int:
    if value.expire_timestamp >= 0:
        return value.expire_timestamp
    return max(empty_since_ms, value.commit_timestamp) + retention_ms


__all__ = ["GroupShard", "NewOffset", "UnknownGroupRecord"]
