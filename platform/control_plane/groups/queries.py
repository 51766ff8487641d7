"""Groups as their brokers tell of them, joined: what is committed is known to a group's coordinator, where its members
are and where the log ends to the partitions' leaders.

They are joined here and not in the engine: every broker's partition of `__telemetry` is read here anyway, so that no
broker has to ask another each second, and a row that changes with each record does not repeat what another row says.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum

from control_plane.groups.rules import LIMITS, Now, Status, Trend, Verdict, duration, judge, oldest, records, worst
from control_plane.live.group_book import GroupPage, LagPoint, Sample
from control_plane.live.group_states import MemberTold, OffsetTold, Place, ReadersTold
from control_plane.live.service import live
from control_plane.live.snapshot import Snapshot
from control_plane.live.states import PartitionState

READER_ROWS_MAX = 500
EMPTY = "There is nothing in it to read."


class Doubt(StrEnum):
    """Why a position is not told."""

    NO_OWNER = "no_owner"
    NOT_SEEN = "not_seen"
    """Its owner has not fetched lately."""
    AMBIGUOUS = "ambiguous"
    """Two readers go by the owner's client id and host: which of them it is cannot be said."""


@dataclass(frozen=True, slots=True)
class PartitionTruth:
    topic: str
    partition: int
    committed: OffsetTold | None
    """None: a member owns it, and nothing was committed."""
    state: PartitionState | None
    owner: MemberTold | None
    position: int | None
    doubt: Doubt | None
    verdict: Verdict
    lag: int | None
    lag_s: float | None
    commit_rate: float | None
    """Commits per second; None where one look is all there is."""
    samples: tuple[Sample, ...] = ()

    @property
    def repeat_count(self) -> int | None:
        """What its owner has been sent and has not committed: a crash would repeat it."""
        if self.position is None or self.committed is None:
            return None
        return max(0, self.position - self.committed.offset)


@dataclass(frozen=True, slots=True)
class GroupTruth:
    page: GroupPage
    partitions: list[PartitionTruth]

    @property
    def status(self) -> Status:
        return worst(it.verdict.status for it in self.partitions)

    @property
    def lag(self) -> int | None:
        lags = [it.lag for it in self.partitions if it.lag is not None]
        return sum(lags) if lags else None

    @property
    def lag_s(self) -> float | None:
        return max((it.lag_s for it in self.partitions if it.lag_s is not None), default=None)

    @property
    def worst_partition(self) -> PartitionTruth | None:
        status = self.status
        found = [it for it in self.partitions if it.verdict.status is status]
        return max(found, key=lambda it: it.lag or 0, default=None)

    @property
    def words(self) -> str:
        """Of the worst partition where something is wrong, else of the group as a whole."""
        if not self.partitions:
            return "It has no offsets, and nobody owns a partition."
        if self.lag == 0:
            return "Everything is read."
        if not self.page.told.member_count and self.lag is not None:
            return f"Nobody is in the group: {records(self.lag)} wait{oldest(self.lag_s)}."
        if self.status is not Status.OK or self.lag is None:
            return "" if self.worst_partition is None else self.worst_partition.verdict.words
        done = "" if self.eta_s is None else f"; at this pace done in {duration(self.eta_s)}"
        return f"{records(self.lag)} to read{oldest(self.lag_s)}{done}."

    @property
    def trend(self) -> Trend:
        trends = {it.verdict.trend for it in self.partitions}
        return next((it for it in (Trend.GROWING, Trend.SHRINKING) if it in trends), Trend.STEADY)

    @property
    def eta_s(self) -> float | None:
        return max((it.verdict.eta_s for it in self.partitions if it.verdict.eta_s is not None), default=None)

    @property
    def last_commit_ms(self) -> int | None:
        return max((it.committed.commit_ms for it in self.partitions if it.committed is not None), default=None)

    @property
    def topics(self) -> list[str]:
        return sorted({it.topic for it in self.partitions})

    @property
    def lag_history(self) -> tuple[LagPoint, ...]:
        return self.page.lag


def group_truths(tenant: str) -> list[GroupTruth]:
    """Every group of a tenant; positions are left out, since a list does not show them."""
    return truths_of(live.snapshot, tenant, _now_ms())


def group_truth(tenant: str, name: str) -> GroupTruth | None:
    return truth_of(live.snapshot, tenant, name, _now_ms())


def truths_of(snapshot: Snapshot, tenant: str, now_ms: int) -> list[GroupTruth]:
    states = _by_partition(snapshot.topics(tenant))
    return [_Join(page, states, {}, {}, now_ms).truth() for page in snapshot.groups(tenant)]


def truth_of(snapshot: Snapshot, tenant: str, name: str, now_ms: int) -> GroupTruth | None:
    pages = snapshot.groups(tenant)
    page = next((each for each in pages if each.name == name), None)
    if page is None:
        return None
    names = {topic for topic, _ in _places(page)}
    states = _by_partition({topic: snapshot.topic(tenant, topic) for topic in names})
    return _Join(page, states, snapshot.readers(tenant), claims_of(pages, names), now_ms).truth()


def readers_of_topic(tenant: str, topic: str) -> list[GroupTruth]:
    """Groups that have an offset in the topic or a member that owns some of it, with these partitions only."""
    truths = (
        GroupTruth(truth.page, [it for it in truth.partitions if it.topic == topic]) for truth in group_truths(tenant)
    )
    return [truth for truth in truths if truth.partitions][:READER_ROWS_MAX]


Claims = Mapping[tuple[Place, str, str], int]
"""How many members own a partition under one client id and host, over all groups."""


def claims_of(pages: Iterable[GroupPage], topics: Iterable[str]) -> Claims:
    claims: dict[tuple[Place, str, str], int] = {}
    wanted = frozenset(topics)
    for page in pages:
        for member in page.told.members:
            for topic in wanted & member.partitions.keys():
                for index in member.partitions[topic]:
                    key = ((topic, index), member.client_id, member.host)
                    claims[key] = claims.get(key, 0) + 1
    return claims


def _by_partition(topics: Mapping[str, Iterable[PartitionState]]) -> dict[Place, PartitionState]:
    return {(topic, state.partition): state for topic, states in topics.items() for state in states}


def _places(page: GroupPage) -> list[Place]:
    owned = {
        (topic, index)
        for member in page.told.members
        for topic, indexes in member.partitions.items()
        for index in indexes
    }
    return sorted(owned | page.offsets.keys())


@dataclass(frozen=True, slots=True)
class _Join:
    """One group's rows, made of what its coordinator and the partitions' leaders say."""

    page: GroupPage
    states: Mapping[Place, PartitionState]
    readers: Mapping[Place, ReadersTold]
    claims: Claims
    now_ms: int

    def truth(self) -> GroupTruth:
        owners = {
            (topic, index): member
            for member in self.page.told.members
            for topic, indexes in member.partitions.items()
            for index in indexes
        }
        rows = [self._row(place, owners.get(place)) for place in _places(self.page) if self._is_of_this_topic(place)]
        return GroupTruth(self.page, rows)

    def _is_of_this_topic(self, place: Place) -> bool:
        """An offset of a topic that was deleted and made again says nothing of the new one."""
        told, state = self.page.offsets.get(place), self.states.get(place)
        return told is None or state is None or told.topic_id in ("", state.topic_id)

    def _row(self, place: Place, owner: MemberTold | None) -> PartitionTruth:
        told, state = self.page.offsets.get(place), self.states.get(place)
        samples = self.page.samples.get(place, ())
        lag = _lag(told, state)
        lag_s = None if lag is None else lag_seconds(told, lag, self.now_ms)
        position, doubt = position_of(place, owner, self.readers.get(place), self.claims)
        return PartitionTruth(
            topic=place[0],
            partition=place[1],
            committed=told,
            state=state,
            owner=owner,
            position=position,
            doubt=doubt,
            verdict=self._verdict(told, lag, lag_s, samples),
            lag=lag,
            lag_s=lag_s,
            commit_rate=commit_rate(samples, told, self.now_ms),
            samples=samples,
        )

    def _verdict(
        self, told: OffsetTold | None, lag: int | None, lag_s: float | None, samples: tuple[Sample, ...]
    ) -> Verdict:
        if told is None:
            is_empty = lag == 0
            return Verdict(Status.OK, EMPTY) if is_empty else Verdict(Status.UNKNOWN, "Nothing was committed yet.")
        if lag is None:
            return Verdict(Status.UNKNOWN, "Where the log ends is not known now.")
        return judge(Now(self.now_ms, told.commit_ms, lag, lag_s), samples)


def _lag(told: OffsetTold | None, state: PartitionState | None) -> int | None:
    if state is None or state.high_watermark < 0:
        return None
    if told is None:
        # Of a partition that is new, say, because its topic grew.
        return 0 if state.high_watermark <= state.log_start_offset else None
    return max(0, state.high_watermark - told.offset)


def lag_seconds(told: OffsetTold | None, lag: int, now_ms: int) -> float | None:
    """The age of the first record that is not read: by its own timestamp, which the coordinator read in the log."""
    if lag == 0:
        return 0.0
    if told is None or told.unread_ms < 0:
        return None
    return max(0.0, (now_ms - told.unread_ms) / 1000)


def position_of(
    place: Place, owner: MemberTold | None, readers: ReadersTold | None, claims: Claims
) -> tuple[int | None, Doubt | None]:
    """Where a partition's owner is, if exactly one reader can be it. Never a guess."""
    if owner is None:
        return None, Doubt.NO_OWNER
    if claims.get((place, owner.client_id, owner.host), 0) > 1:
        return None, Doubt.AMBIGUOUS
    named = [] if readers is None else readers.readers
    found = next((it for it in named if (it.client_id, it.host) == (owner.client_id, owner.host)), None)
    if found is None:
        return None, Doubt.NOT_SEEN
    return (found.offset, None) if found.connection_count == 1 else (None, Doubt.AMBIGUOUS)


def commit_rate(samples: tuple[Sample, ...], told: OffsetTold | None, now_ms: int) -> float | None:
    """Of running totals, over the last minutes; a new coordinator begins to count anew."""
    if told is None:
        return None
    recent = [it for it in samples if now_ms - it.at_ms <= LIMITS.window_ms and it.commit_count <= told.commit_count]
    if not recent or now_ms - recent[0].at_ms < 1000:
        return None
    return (told.commit_count - recent[0].commit_count) / ((now_ms - recent[0].at_ms) / 1000)


def _now_ms() -> int:
    return int(time.time() * 1000)
