"""Carries out what classic groups decide: answers are given, a group is written and acknowledged before its members
learn of it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from broker_engine.errors import ErrorCode
from broker_engine.groups.classic import ClassicGroup
from broker_engine.groups.effects import Effect, Reply, Store
from broker_engine.groups.joining import on_stored
from broker_engine.groups.shard import GroupShard
from broker_engine.groups.topic_watch import watch_topics
from broker_engine.server.group_topics import TenantTopics, tenant_of
from broker_engine.server.shards import Loaded, Shards, acked
from broker_engine.server.supervisor import Supervisor

if TYPE_CHECKING:
    from broker_engine.server.broker import Broker


class ClassicGroups:
    def __init__(
        self,
        broker: Broker,
        shards: Shards[GroupShard],
        tasks: Supervisor,
        arm: Callable[[Loaded[GroupShard], str], None],
    ) -> None:
        self._broker = broker
        self._clock = broker.clock
        self._shards = shards
        self._tasks = tasks
        self._arm = arm

    def on_loaded(self, loaded: Loaded[GroupShard]) -> None:
        """From here on it is seen when their topics change."""
        for group in loaded.shard.groups.values():
            if isinstance(group, ClassicGroup):
                self._watch(group)

    def _watch(self, group: ClassicGroup) -> None:
        topics = TenantTopics(self._broker.image, tenant_of(group.name))
        watch_topics(group, topics, self._clock.monotonic_ms())

    def perform(self, loaded: Loaded[GroupShard], group: ClassicGroup, effects: Iterable[Effect]) -> None:
        for effect in effects:
            if isinstance(effect, Reply):
                waiter = effect.waiter
                assert isinstance(waiter, asyncio.Future)
                if not waiter.done():
                    waiter.set_result(effect.answer)
            else:
                self._store(loaded, group, effect)
        if group.is_nothing and loaded.shard.group(group.name) is group:
            loaded.shard.forget(group.name)
        self._watch(group)
        self._arm(loaded, group.name)

    def _store(self, loaded: Loaded[GroupShard], group: ClassicGroup, store: Store) -> None:
        record = loaded.shard.stored_group(group, self._clock.now_ms())
        write = self._shards.write(loaded, [record], is_replayed=False)
        self._tasks.spawn(self._report(loaded, group, store, write), f"store group {group.name}")

    async def _report(
        self, loaded: Loaded[GroupShard], group: ClassicGroup, store: Store, write: asyncio.Future[ErrorCode]
    ) -> None:
        code = await acked(write)
        self.perform(loaded, group, on_stored(group, store, code, self._clock.monotonic_ms()))
