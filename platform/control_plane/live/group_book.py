"""All groups as their coordinators tell of them, with a short history of each. A part of the snapshot, under its lock.

A deposed coordinator may go on telling for a moment: the epoch of its partition of `__consumer_offsets` tells them
apart. What nobody has repeated for a while is gone. Histories are kept in memory, bounded, one per web process.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from control_plane.live.group_states import (
    UNREAD_UNKNOWN,
    EventTold,
    GroupTold,
    OffsetTold,
    Place,
    ReadersTold,
    group_told,
    offset_told,
    readers_told,
)

STALE_AFTER_S = 100.0
"""Every row comes again within 30 s."""
EVENTS_KEPT = 200
SAME_EVENT_MS = 50
"""A coordinator works out an event's wall clock anew for each row."""
LAG_POINTS_KEPT, LAG_POINT_EVERY_MS = 180, 5_000
SAMPLES_KEPT, SAMPLE_EVERY_MS = 40, 15_000
TIME_STANDS_S = 10.0
HISTORIES_MAX = 20_000
"""Partitions of groups with samples of their own."""

GroupKey = tuple[str, str]
Subject = Mapping[str, Any]
FindEnd = Callable[[str, Place, str], int | None]
"""A tenant's partition, and the id of its topic, to its high watermark, where that is known."""


@dataclass(frozen=True, slots=True)
class Sample:
    """One look at a partition: what was committed, when, and the lag at that moment."""

    at_ms: int
    offset: int
    commit_ms: int
    lag: int
    commit_count: int = 0


@dataclass(frozen=True, slots=True)
class LagPoint:
    at_ms: int
    records: int
    seconds: float | None


@dataclass(slots=True)
class _Group:
    told: GroupTold | None = None
    events: tuple[EventTold, ...] = ()
    offsets: dict[Place, OffsetTold] = field(default_factory=dict)
    samples: dict[Place, deque[Sample]] = field(default_factory=dict)
    lag: deque[LagPoint] = field(default_factory=lambda: deque(maxlen=LAG_POINTS_KEPT))


@dataclass(frozen=True, slots=True)
class GroupPage:
    """What is known of one group, as it was when it was asked for."""

    name: str
    told: GroupTold
    events: tuple[EventTold, ...]
    offsets: Mapping[Place, OffsetTold]
    samples: Mapping[Place, tuple[Sample, ...]]
    lag: tuple[LagPoint, ...]


class GroupBook:
    def __init__(self) -> None:
        self._groups: dict[GroupKey, _Group] = {}
        self._readers: dict[str, dict[Place, ReadersTold]] = {}
        self._history_count = 0
        self._sampled_ms = 0

    # --- readers

    def pages(self, tenant: str, now_s: float) -> list[GroupPage]:
        own = sorted((name, group) for (owner, name), group in self._groups.items() if owner == tenant)
        return [page for name, group in own if (page := _page(name, group, now_s)) is not None]

    def page(self, tenant: str, name: str, now_s: float) -> GroupPage | None:
        group = self._groups.get((tenant, name))
        return None if group is None else _page(name, group, now_s)

    def readers(self, tenant: str, now_s: float) -> dict[Place, ReadersTold]:
        found = self._readers.get(tenant, {})
        return {place: told for place, told in found.items() if now_s - told.heard_s < STALE_AFTER_S}

    # --- the one writer

    def fold_group(self, subject: Subject, row: Subject, heard_s: float) -> None:
        key = (str(subject["tenant"]), str(subject["name"]))
        told, group = group_told(int(subject["broker"]), row, heard_s), self._groups.setdefault(key, _Group())
        if group.told is not None and not _is_newer(told, group.told):
            return
        if row.get("is_deleted"):
            self._forget(key)
            return
        group.told = told
        group.events = _merged(group.events, told.events)

    def fold_offset(self, subject: Subject, row: Subject, heard_s: float) -> None:
        key = (str(subject["tenant"]), str(subject["group"]))
        place = (str(subject["name"]), int(subject["partition"]))
        told, group = offset_told(row, heard_s), self._groups.setdefault(key, _Group())
        known = group.offsets.get(place)
        if known is not None and not _is_newer(told, known):
            return
        if known is not None and known.topic_id != told.topic_id:  # deleted and made again: another history
            self._forget_offset(group, place)
            known = None
        if row.get("is_deleted"):
            self._forget_offset(group, place)
        else:
            group.offsets[place] = told if known is None else _with_known_time(told, known)
        if not group.offsets and group.told is None:
            self._groups.pop(key, None)

    def fold_readers(self, subject: Subject, row: Subject, heard_s: float) -> None:
        places = self._readers.setdefault(str(subject["tenant"]), {})
        place = (str(subject["name"]), int(subject["partition"]))
        told, known = readers_told(row, heard_s), places.get(place)
        if known is not None and (told.leader_epoch, told.at_ms) < (known.leader_epoch, known.at_ms):
            return
        if told.readers:
            places[place] = told
        else:
            places.pop(place, None)

    def sample(self, now_ms: int, now_s: float, end_of: FindEnd) -> None:
        """A point of each history, when it is time for one."""
        if now_ms - self._sampled_ms < LAG_POINT_EVERY_MS:
            return
        self._sampled_ms = now_ms
        for key, group in list(self._groups.items()):
            if _is_stale(group, now_s):
                self._forget(key)
                continue
            lags = dict(_lags(key[0], group, end_of))
            if lags:
                behind = [group.offsets[place] for place, lag in lags.items() if lag]
                group.lag.append(LagPoint(now_ms, sum(lags.values()), _seconds(behind, now_ms)))
            for place, lag in lags.items():
                self._sample_partition(group, place, lag, now_ms)

    def _sample_partition(self, group: _Group, place: Place, lag: int, now_ms: int) -> None:
        samples, told = group.samples.get(place), group.offsets[place]
        if samples is None:
            if self._history_count >= HISTORIES_MAX:
                return
            samples = group.samples[place] = deque(maxlen=SAMPLES_KEPT)
            self._history_count += 1
        if samples and now_ms - samples[-1].at_ms < SAMPLE_EVERY_MS:
            return
        samples.append(Sample(now_ms, told.offset, told.commit_ms, lag, told.commit_count))

    def _forget_offset(self, group: _Group, place: Place) -> None:
        group.offsets.pop(place, None)
        self._history_count -= group.samples.pop(place, None) is not None

    def _forget(self, key: GroupKey) -> None:
        group = self._groups.pop(key)
        self._history_count -= len(group.samples)


def _page(name: str, group: _Group, now_s: float) -> GroupPage | None:
    told = group.told
    if told is None or now_s - told.heard_s >= STALE_AFTER_S:
        return None
    offsets = {place: it for place, it in group.offsets.items() if now_s - it.heard_s < STALE_AFTER_S}
    samples = {place: tuple(group.samples[place]) for place in offsets if place in group.samples}
    return GroupPage(name, told, group.events, offsets, samples, tuple(group.lag))


def _is_stale(group: _Group, now_s: float) -> bool:
    heard = [group.told.heard_s] if group.told is not None else []
    heard += [told.heard_s for told in group.offsets.values()]
    return not heard or now_s - max(heard) >= STALE_AFTER_S


def _is_newer(told: GroupTold | OffsetTold, known: GroupTold | OffsetTold) -> bool:
    return (told.coordinator_epoch, told.at_ms) >= (known.coordinator_epoch, known.at_ms)


def _with_known_time(told: OffsetTold, known: OffsetTold) -> OffsetTold:
    """A new offset's first unread record is looked up within a second or two: until then the former one stands, which
    was not younger."""
    is_open = told.unread_ms == UNREAD_UNKNOWN and known.unread_ms >= 0 and told.offset >= known.offset
    if not is_open or told.heard_s - known.looked_s > TIME_STANDS_S:
        return told
    return replace(told, unread_ms=known.unread_ms, looked_s=known.looked_s)


def _merged(known: tuple[EventTold, ...], told: tuple[EventTold, ...]) -> tuple[EventTold, ...]:
    """A row has the newest events: those before them are kept from earlier rows."""
    if not told:
        return known
    first_ms = told[0].at_ms - SAME_EVENT_MS
    return (*(event for event in known if event.at_ms < first_ms), *told)[-EVENTS_KEPT:]


def _seconds(behind: Collection[OffsetTold], now_ms: int) -> float | None:
    """The age of the oldest record that is not read; None where no broker has looked at it yet."""
    if not behind:
        return 0.0
    oldest_ms = min((told.unread_ms for told in behind if told.unread_ms >= 0), default=None)
    return None if oldest_ms is None else max(0.0, (now_ms - oldest_ms) / 1000)


def _lags(tenant: str, group: _Group, end_of: FindEnd) -> Iterator[tuple[Place, int]]:
    for place, told in group.offsets.items():
        end_offset = end_of(tenant, place, told.topic_id)
        if end_offset is not None:
            yield place, max(0, end_offset - told.offset)
