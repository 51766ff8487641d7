"""Which rows about groups are due: each second the groups and offsets that changed, and those that have their turn.

Follows the shards of `__consumer_offsets` that this broker leads. A commit makes a new OffsetValue, so that what
changed is seen without comparing values. Bounded: offsets looked at and told of in one tick, offsets and groups kept.
What is above the bounds is told of later, or not at all.
"""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import islice
from typing import TypeVar
from uuid import UUID

from broker_engine.groups.consumer.group import ConsumerGroup
from broker_engine.groups.records import OffsetValue
from broker_engine.groups.shard import AnyGroup, GroupShard
from broker_engine.names import ROOT, Name, from_wire, to_wire
from broker_engine.server.shards import Loaded
from broker_engine.telemetry.group_rows import Coordinated, group_row, offset_row
from broker_engine.telemetry.schema import UNREAD_UNKNOWN, Key, Kind, Row

log = logging.getLogger(__name__)

SCANNED_PER_TICK_MAX = 20_000
"""Looks at offsets: some 3 ms of the event loop. Where there are more, shards take turns."""
GROUPS_PER_TICK_MAX = 100
OFFSETS_PER_TICK_MAX = 500
OFFSETS_KEPT_MAX = 100_000
GROUPS_KEPT_MAX = 20_000
QUESTIONS_PER_TICK_MAX = 500
DOUBTED_AFTER_MS = 60_000
"""Of groups that commit, each commit is looked up anyway."""

LoadedShard = Loaded[GroupShard]
T = TypeVar("T")
MakeKey = Callable[..., Key]
FindTopic = Callable[[UUID], Name | None]
Place = tuple[str, str, int]
"""Group, topic (physical texts) and partition."""


@dataclass(slots=True)
class OffsetEntry:
    key: Key
    turn: int
    value: OffsetValue
    commit_count: int
    coordinator_epoch: int
    unread_ms: int = UNREAD_UNKNOWN
    is_doubted: bool = False
    """Retention may have taken the record away meanwhile."""

    @property
    def is_question(self) -> bool:
        """A record that was found keeps its time; for one that is to come one has to look."""
        return self.unread_ms < 0 or self.is_doubted


@dataclass(slots=True)
class GroupEntry:
    key: Key
    turn: int
    group: AnyGroup | None
    fingerprint: object


@dataclass(slots=True)
class _Book:
    """What is known of one shard."""

    groups: dict[str, GroupEntry] = field(default_factory=dict)
    offsets: dict[Place, OffsetEntry] = field(default_factory=dict)


class GroupTeller:
    def __init__(self, make_key: MakeKey, turn_of: Callable[[Key], int], topic_of: FindTopic) -> None:
        self._make_key = make_key
        self._topic_of = topic_of
        self._turn_of = turn_of
        self._books: dict[LoadedShard, _Book] = {}
        self._next_index = 0
        self._changed_groups: dict[tuple[LoadedShard, str], None] = {}
        self._changed_offsets: dict[tuple[LoadedShard, Place], None] = {}
        self._by_turn: defaultdict[int, dict[tuple[LoadedShard, Place | str], None]] = defaultdict(dict)
        self._gone: list[Key] = []
        self._handed_over: list[Key] = []
        self._questions: dict[tuple[LoadedShard, Place], None] = {}
        self._group_count = self._offset_count = 0

    # --- following

    def follow(self, shards: Iterable[LoadedShard]) -> None:
        shards = dict.fromkeys(shards)
        for loaded in [known for known in self._books if known not in shards]:
            self._hand_over(loaded)
        budget = SCANNED_PER_TICK_MAX
        later = [loaded for loaded in shards if loaded.index >= self._next_index]
        for loaded in [*later, *(each for each in shards if each.index < self._next_index)]:
            if budget <= 0:
                self._next_index = loaded.index
                return
            budget -= self._scan(loaded, self._books.setdefault(loaded, _Book()))
        self._next_index = 0

    def _scan(self, loaded: LoadedShard, book: _Book) -> int:
        shard, seen = loaded.shard, 0
        for name in shard.names():
            self._scan_group(loaded, book, name, shard.group(name))
            seen += 1
        for group, offsets in shard.offsets.items():
            seen += len(offsets)
            for (topic, index), value in offsets.items():
                entry = book.offsets.get((group, topic, index))
                if entry is None or entry.value is not value:
                    self._on_commit(loaded, book, (group, topic, index), value, entry)
        if len(book.groups) + len(book.offsets) > seen:
            self._drop_gone(loaded, book)
        return seen + 1

    def _scan_group(self, loaded: LoadedShard, book: _Book, name: str, group: AnyGroup | None) -> None:
        entry, fingerprint = book.groups.get(name), _fingerprint(group)
        if entry is None:
            if self._group_count >= GROUPS_KEPT_MAX:
                return
            owner = from_wire(name, ROOT)
            key = self._make_key(Kind.GROUP, tenant=owner.tenant, name=owner.name)
            book.groups[name] = GroupEntry(key, self._turn_of(key), group, fingerprint)
            self._by_turn[self._turn_of(key)][loaded, name] = None
            self._group_count += 1
        elif entry.fingerprint == fingerprint and entry.group is group:
            return
        else:
            entry.group, entry.fingerprint = group, fingerprint
        self._changed_groups[loaded, name] = None

    def _on_commit(
        self, loaded: LoadedShard, book: _Book, place: Place, value: OffsetValue, entry: OffsetEntry | None
    ) -> None:
        count = loaded.shard.commit_counts.get(place, 0)
        if entry is None:
            if self._offset_count >= OFFSETS_KEPT_MAX:
                return
            key = self._offset_key(place)
            book.offsets[place] = entry = OffsetEntry(key, self._turn_of(key), value, count, loaded.leader_epoch)
            self._by_turn[entry.turn][loaded, place] = None
            self._offset_count += 1
        else:
            is_same_place = entry.value.offset == value.offset and entry.unread_ms >= 0
            entry.unread_ms = entry.unread_ms if is_same_place else UNREAD_UNKNOWN
            entry.value, entry.commit_count = value, count
        self._changed_offsets[loaded, place] = None
        self._questions[loaded, place] = None

    def _offset_key(self, place: Place) -> Key:
        group, topic, index = place
        owner, name = from_wire(group, ROOT), from_wire(topic, ROOT)
        return self._make_key(
            Kind.GROUP_OFFSET, tenant=owner.tenant, name=_seen_by(owner, name), partition=index, group=owner.name
        )

    def _drop_gone(self, loaded: LoadedShard, book: _Book) -> None:
        shard, names = loaded.shard, dict.fromkeys(loaded.shard.names())
        for name in [known for known in book.groups if known not in names]:
            entry = book.groups.pop(name)
            self._by_turn[entry.turn].pop((loaded, name), None)
            self._gone.append(entry.key)
            self._group_count -= 1
        for place in [known for known in book.offsets if known[1:] not in shard.offsets.get(known[0], {})]:
            offset = book.offsets.pop(place)
            self._by_turn[offset.turn].pop((loaded, place), None)
            self._gone.append(offset.key)
            self._offset_count -= 1

    def _hand_over(self, loaded: LoadedShard) -> None:
        """Another broker coordinates these from now on."""
        book = self._books.pop(loaded)
        for name, group in book.groups.items():
            self._by_turn[group.turn].pop((loaded, name), None)
            self._handed_over.append(group.key)
        for place, entry in book.offsets.items():
            self._by_turn[entry.turn].pop((loaded, place), None)
            self._handed_over.append(entry.key)
        self._group_count -= len(book.groups)
        self._offset_count -= len(book.offsets)

    # --- telling

    def rows(self, turn: int, now_ms: int, wall_offset_ms: int) -> Iterator[tuple[Key, int, Row]]:
        due = list(self._by_turn.get(turn, ()))
        groups = [*_taken(self._changed_groups, GROUPS_PER_TICK_MAX), *((it, n) for it, n in due if isinstance(n, str))]
        offsets = [
            *_taken(self._changed_offsets, OFFSETS_PER_TICK_MAX),
            *((it, place) for it, place in due if not isinstance(place, str)),
        ]
        for loaded, name in dict.fromkeys(groups):
            if (book := self._books.get(loaded)) is not None and (group := book.groups.get(name)) is not None:
                by = Coordinated(loaded.index, loaded.leader_epoch, now_ms, wall_offset_ms)
                row = group_row(group.group, by, self._names_for(from_wire(name, ROOT)))
                yield group.key, group.turn, row
        for loaded, place in dict.fromkeys(offsets):
            if (entry := self._find(loaded, place)) is not None:
                if entry.turn == turn and now_ms - entry.value.commit_timestamp > DOUBTED_AFTER_MS:
                    entry.is_doubted = True
                    self._questions[loaded, place] = None
                yield entry.key, entry.turn, _row_of(entry, now_ms)

    def _names_for(self, owner: Name) -> Callable[[UUID], str | None]:
        def name_of(topic_id: UUID) -> str | None:
            topic = self._topic_of(topic_id)
            return None if topic is None else _seen_by(owner, topic)

        return name_of

    def take_gone(self) -> list[Key]:
        gone, self._gone = self._gone, []
        return gone

    def take_handed_over(self) -> list[Key]:
        handed_over, self._handed_over = self._handed_over, []
        return handed_over

    # --- the time of what is not read yet

    def take_questions(self) -> list[tuple[LoadedShard, Place, OffsetValue]]:
        """Of which offsets the next record's time is to be looked up, the longest unasked first."""
        asked = []
        for loaded, place in _taken(self._questions, QUESTIONS_PER_TICK_MAX):
            entry = self._find(loaded, place)
            if entry is not None and entry.is_question:
                asked.append((loaded, place, entry.value))
                entry.is_doubted = False
                if entry.unread_ms < 0:
                    # Until there is a record, asked again and again, behind all others.
                    self._questions[loaded, place] = None
        return asked

    def answer(self, loaded: LoadedShard, place: Place, value: OffsetValue, unread_ms: int) -> None:
        entry = self._find(loaded, place)
        if entry is None or entry.value is not value or entry.unread_ms == unread_ms:
            return
        entry.unread_ms = unread_ms
        self._changed_offsets[loaded, place] = None

    def _find(self, loaded: LoadedShard, place: Place) -> OffsetEntry | None:
        book = self._books.get(loaded)
        return None if book is None else book.offsets.get(place)


def _row_of(entry: OffsetEntry, now_ms: int) -> Row:
    return offset_row(
        entry.value,
        coordinator_epoch=entry.coordinator_epoch,
        commit_count=entry.commit_count,
        unread_ms=entry.unread_ms,
        now_ms=now_ms,
    )


def _fingerprint(group: AnyGroup | None) -> object:
    """Changes with all that a row says of a group: members only come, go and are assigned with one of these."""
    if group is None:
        return None
    events = group.timeline.events
    newest = events[-1] if events else None
    if isinstance(group, ConsumerGroup):
        standings = tuple((member.id, member.epoch, member.standing.state) for member in group.members.values())
        return group.state, group.epoch, group.assignment_epoch, standings, newest
    return group.state, group.generation, group.protocol, group.leader, tuple(group.members), newest


def _seen_by(owner: Name, topic: Name) -> str:
    """The topic as the group's own tenant names it; root's groups may read any tenant's."""
    return topic.name if topic.tenant == owner.tenant else to_wire(topic, ROOT)


def _taken(pending: dict[T, None], count_max: int) -> list[T]:
    taken = list(islice(pending, count_max))
    for each in taken:
        del pending[each]
    return taken
