"""All groups of one partition of `__consumer_offsets`, pure: `replay` alone changes offsets, so that what a restart
reads and what happens live take the same way. A group's members live in memory; its generations are in the log.

Names are physical texts. An offset belongs to a topic id: a topic that was deleted and made again has none.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from uuid import UUID

from broker_engine.groups.classic import ClassicGroup, GroupSettings
from broker_engine.groups.records import (
    GroupKey,
    GroupRecord,
    OffsetKey,
    OffsetValue,
    UnknownGroupRecord,
    decode_group,
    decode_key,
    decode_offset,
    group_record,
    offset_record,
)
from broker_engine.groups.states import GroupState
from broker_engine.groups.stored import group_value, restore_group

TopicPartition = tuple[str, int]


@dataclass(frozen=True, slots=True)
class NewOffset:
    topic: str
    partition: int
    offset: int
    leader_epoch: int
    metadata: str
    topic_id: UUID


class GroupShard:
    def __init__(self, settings: GroupSettings) -> None:
        self.groups: dict[str, ClassicGroup] = {}
        self.offsets: dict[str, dict[TopicPartition, OffsetValue]] = {}
        self._settings = settings

    def group(self, name: str) -> ClassicGroup | None:
        return self.groups.get(name)

    def group_or_new(self, name: str, wall_ms: int) -> ClassicGroup:
        if name not in self.groups:
            self.groups[name] = ClassicGroup(name, self._settings, state_since_ms=wall_ms)
        return self.groups[name]

    def names(self) -> Iterator[str]:
        """Every group, also those that have offsets and never had a member."""
        yield from dict.fromkeys((*self.groups, *self.offsets))

    # --- what the log says

    def replay(self, key: bytes, value: bytes | None, now_ms: int) -> None:
        """UnknownGroupRecord where it is none of ours."""
        decoded = decode_key(key)
        if isinstance(decoded, OffsetKey):
            self._replay_offset(decoded, None if value is None else decode_offset(value))
        else:
            self._replay_group(decoded, value, now_ms)

    def _replay_offset(self, key: OffsetKey, value: OffsetValue | None) -> None:
        offsets = self.offsets.setdefault(key.group, {})
        if value is None:
            offsets.pop((key.topic, key.partition), None)
        else:
            offsets[key.topic, key.partition] = value
        if not offsets:
            del self.offsets[key.group]

    def _replay_group(self, key: GroupKey, value: bytes | None, now_ms: int) -> None:
        if value is None:
            self.groups.pop(key.group, None)
        else:
            restore_group(self.group_or_new(key.group, 0), decode_group(value), now_ms)

    # --- what is to be written

    def offset_records(self, group: str, offsets: Iterable[NewOffset], wall_ms: int) -> list[GroupRecord]:
        return [
            offset_record(
                OffsetKey(group=group, topic=new.topic, partition=new.partition),
                OffsetValue(
                    offset=new.offset,
                    leader_epoch=new.leader_epoch,
                    metadata=new.metadata,
                    commit_timestamp=wall_ms,
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
        records = self.offset_removals(name, self.offsets.get(name, {}))
        return [*records, group_record(name, None)] if name in self.groups else records

    def offset_removals(self, name: str, places: Iterable[TopicPartition]) -> list[GroupRecord]:
        known = self.offsets.get(name, {})
        return [
            offset_record(OffsetKey(group=name, topic=topic, partition=partition), None)
            for topic, partition in places
            if (topic, partition) in known
        ]

    def committed(self, name: str) -> Mapping[TopicPartition, OffsetValue]:
        return self.offsets.get(name, {})

    def expired(self, wall_ms: int, retention_ms: int) -> list[GroupRecord]:
        """Offsets of groups that have been empty for the whole time, and the groups that then have nothing left."""
        records: list[GroupRecord] = []
        for name in list(self.names()):
            group = self.groups.get(name)
            if group is None or group.state is GroupState.EMPTY:
                records += self._expired_of(name, group, wall_ms - retention_ms)
        return records

    def _expired_of(self, name: str, group: ClassicGroup | None, before_ms: int) -> list[GroupRecord]:
        since_ms = -1 if group is None else group.state_since_ms
        known = self.offsets.get(name, {})
        old = [place for place, value in known.items() if max(since_ms, value.commit_timestamp) <= before_ms]
        records = self.offset_removals(name, old)
        if group is not None and len(old) == len(known) and since_ms <= before_ms:
            records.append(group_record(name, None))
        return records


__all__ = ["GroupShard", "NewOffset", "UnknownGroupRecord"]
