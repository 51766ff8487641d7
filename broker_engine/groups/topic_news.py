"""Why a group may rebalance though nobody came or went: a member asks for other topics, or a topic that the group reads
was made, deleted or grew. Pure; topics go by the names that the group's own tenant gives them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from broker_engine.groups.consumer.assignors.spec import TopicSpec
from broker_engine.names import TOPIC_NAME_LENGTH_MAX

NAMED_MAX = 3
"""The events of a group go out in one row, and anybody may subscribe to anything."""

Seen = Mapping[str, TopicSpec | None]
"""Topics that a group asks for; None where there is no such topic."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicNews:
    topics: tuple[str, ...] = ()
    """The one whose partitions changed, or those that a member asks for from now on."""
    dropped_topics: tuple[str, ...] = ()
    """Those that a member asks for no more."""
    unnamed_count: int = 0
    """How many more there are."""
    partitions_before: int | None = None
    partitions_after: int | None = None
    """Of the one topic; 0 where there is none. As many as before: it was deleted and made again."""


NO_NEWS = TopicNews()


@dataclass(slots=True)
class TopicWatch:
    """What a group saw of its topics when it last looked."""

    seen: Seen | None = None
    """None: it has not looked, or had no members."""
    version: object = None
    generation: int = -1

    def look(self, now: Seen, names: Iterable[str]) -> list[TopicNews]:
        """What changed since the last look about these; one that was not asked for then was not there."""
        before, self.seen = self.seen, now
        return [] if before is None else _partition_news(before, now, names)


def subscription_news(before: Collection[str], after: Collection[str]) -> TopicNews:
    added, dropped = sorted(set(after) - set(before)), sorted(set(before) - set(after))
    named, named_dropped = _named(added), _named(dropped)
    unnamed_count = len(added) + len(dropped) - len(named) - len(named_dropped)
    return TopicNews(topics=named, dropped_topics=named_dropped, unnamed_count=unnamed_count)


def _partition_news(before: Seen, after: Seen, names: Iterable[str]) -> list[TopicNews]:
    changed = [name for name in sorted(names) if before.get(name) != after.get(name)]
    named = _named(changed)
    news = [
        TopicNews(topics=(name,), partitions_before=_count(before.get(name)), partitions_after=_count(after.get(name)))
        for name in named
    ]
    unnamed_count = len(changed) - len(named)
    return [*news, TopicNews(unnamed_count=unnamed_count)] if unnamed_count else news


def _count(topic: TopicSpec | None) -> int:
    return 0 if topic is None else topic.partition_count


def _named(names: Sequence[str]) -> tuple[str, ...]:
    return tuple(name for name in names if len(name) <= TOPIC_NAME_LENGTH_MAX)[:NAMED_MAX]
