"""What a classic group's coordinator can see of its topics. The clients decide: their leader joins again when it finds
that partitions changed, and says nothing of the reason. So the topics are compared with what they were.
"""

from __future__ import annotations

from collections.abc import Collection

from broker_engine.groups.classic import ClassicGroup
from broker_engine.groups.consumer.topics import Topics
from broker_engine.groups.states import GroupState
from broker_engine.groups.timeline import EventKind


def watch_topics(group: ClassicGroup, topics: Topics, now_ms: int) -> None:
    """After whatever happened to the group; nothing to do while topics and generation are the same."""
    watch = group.timeline.watch
    if watch.version is topics.version and watch.generation == group.generation:
        return
    watch.version, watch.generation = topics.version, group.generation
    if not group.members:
        watch.seen = None
        return
    before = watch.seen or {}
    now = {name: topics.find(topics.physical(name)) for name in _asked_for(group, before)}
    for news in watch.look(now, before.keys() & now.keys()):
        group.timeline.note(EventKind.PARTITIONS_CHANGED, now_ms, group.generation, news=news)


def _asked_for(group: ClassicGroup, before: Collection[str]) -> Collection[str]:
    """While members come and go it is what it was; what their bytes do not tell is not watched."""
    if group.state is GroupState.PREPARING_REBALANCE:
        return before
    return group.roster.subscribed_topics(group.protocol) or ()
