"""What happened to a group, newest last, for people who ask why it rebalances: who came, left or fell silent, what its
members subscribe to, how long it took to settle again and how many partitions changed hands. Bounded; kept in memory,
so a new coordinator begins with a note that the group moved to it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from broker_engine.groups.topic_news import NO_NEWS, TopicNews, TopicWatch

EVENTS_KEPT = 50

Owners = Mapping[Any, str]
"""Which member holds each partition; a static member by its instance, so that coming back is no move."""


class EventKind(StrEnum):
    JOINED = "joined"
    RETURNED = "returned"
    """A static member under its old name."""
    REJOINED = "rejoined"
    """A member asked for a new assignment without new topics: one that gave partitions up does so, and a leader that
    saw partitions change."""
    LEFT = "left"
    TIMED_OUT = "timed_out"
    SUBSCRIPTION_CHANGED = "subscription_changed"
    PARTITIONS_CHANGED = "partitions_changed"
    """A subscribed topic was made, deleted or grew."""
    COORDINATOR_MOVED = "coordinator_moved"
    CONVERTED = "converted"
    """From the classic protocol to the consumer protocol, or back."""
    REBALANCED = "rebalanced"
    """Everybody has its part: `duration_ms` and `partitions_moved` are of the whole rebalance."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RebalanceEvent:
    at_ms: int
    """Of the coordinator's monotonic clock."""
    kind: EventKind
    generation: int
    """Or the group's epoch, with the consumer protocol."""
    member_id: str = ""
    client_id: str = ""
    duration_ms: int | None = None
    partitions_moved: int | None = None
    """None where it cannot be told: a client may assign in bytes of its own."""
    news: TopicNews = NO_NEWS
    """Of which topics it is."""

    def wall_ms(self, *, now_ms: int, now_wall_ms: int) -> int:
        return now_wall_ms - (now_ms - self.at_ms)


class Timeline:
    def __init__(self) -> None:
        self.events: deque[RebalanceEvent] = deque(maxlen=EVENTS_KEPT)
        self.watch = TopicWatch()
        self._began_ms: int | None = None
        self._owners_before: Owners | None = None

    def note(
        self,
        kind: EventKind,
        at_ms: int,
        generation: int,
        member_id: str = "",
        client_id: str = "",
        *,
        news: TopicNews = NO_NEWS,
    ) -> None:
        self.events.append(
            RebalanceEvent(
                at_ms=at_ms, kind=kind, generation=generation, member_id=member_id, client_id=client_id, news=news
            )
        )

    @property
    def is_rebalancing(self) -> bool:
        return self._began_ms is not None

    def begin(self, at_ms: int, owners: Owners | None) -> None:
        """A rebalance begins; one that is under way goes on."""
        if self._began_ms is None:
            self._began_ms, self._owners_before = at_ms, owners

    def settle(self, at_ms: int, generation: int, owners: Owners | None) -> None:
        """Everybody has its part. Nothing is noted where no rebalance was under way."""
        if self._began_ms is None:
            return
        self.events.append(
            RebalanceEvent(
                at_ms=at_ms,
                kind=EventKind.REBALANCED,
                generation=generation,
                duration_ms=at_ms - self._began_ms,
                partitions_moved=moved_count(self._owners_before, owners),
            )
        )
        self._began_ms = self._owners_before = None

    def abandon(self) -> None:
        """Nobody is left to settle."""
        self._began_ms = self._owners_before = None


def moved_count(before: Owners | None, after: Owners | None) -> int | None:
    """Partitions that had an owner and have another one now, or none."""
    if before is None or after is None:
        return None
    return sum(1 for place, owner in before.items() if after.get(place) != owner)
