"""Carries out commands on groups of the consumer protocol: the records of a command are appended, the group changes
with them, and whoever is answered waits until they are acknowledged, on enough disks. An answer that writes nothing
waits for what its group wrote before: nobody is told what a successor might not know.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from broker_engine.errors import BrokerError, ErrorCode
from broker_engine.groups import migration
from broker_engine.groups.classic import ClassicGroup
from broker_engine.groups.consumer import classic_members
from broker_engine.groups.consumer.change import Change, Now
from broker_engine.groups.consumer.group import ConsumerGroup
from broker_engine.groups.consumer.heartbeat import heartbeat, is_leaving, leave, on_time, quick_answer
from broker_engine.groups.consumer.member import JOINING_EPOCH, HeartbeatAnswer, HeartbeatAsk
from broker_engine.groups.consumer.records import ConsumerRecord, encode
from broker_engine.groups.consumer.regex import Matched, match_all
from broker_engine.groups.effects import JoinAnswer, SyncAnswer
from broker_engine.groups.member import JoinAsk, SyncAsk
from broker_engine.groups.records import GroupRecord, group_record
from broker_engine.groups.settings import GroupSettings
from broker_engine.groups.shard import GroupShard
from broker_engine.groups.stored import group_value
from broker_engine.server.classic_groups import ClassicGroups
from broker_engine.server.group_topics import TenantTopics, tenant_of
from broker_engine.server.shards import Loaded, Pair, Shards, acked

if TYPE_CHECKING:
    from broker_engine.server.broker import Broker

log = logging.getLogger(__name__)

Arm = Callable[[Loaded[GroupShard], str], None]


class ConsumerGroups:
    def __init__(
        self, broker: Broker, shards: Shards[GroupShard], classic: ClassicGroups, settings: GroupSettings, arm: Arm
    ) -> None:
        self._broker = broker
        self._shards = shards
        self._classic = classic
        self._settings = settings
        self._arm = arm
        self._writes: dict[str, asyncio.Future[ErrorCode]] = {}
        """The last write of each group that is not acknowledged yet."""

    def topics(self, name: str) -> TenantTopics:
        return TenantTopics(self._broker.image, tenant_of(name))

    # --- members of the consumer protocol

    def quick_heartbeat(self, name: str, ask: HeartbeatAsk) -> HeartbeatAnswer | None:
        """Without a draft, a write or a task, where nothing is new."""
        group = self._shards.find(name).shard.group(name)
        if not isinstance(group, ConsumerGroup) or name in self._writes:
            return None
        return quick_answer(group, ask, self.topics(name), self._broker.clock.monotonic_ms())

    async def heartbeat(self, name: str, ask: HeartbeatAsk) -> HeartbeatAnswer:
        """BrokerError says what is wrong with it."""
        matched = {} if is_leaving(ask) else await self._match_ahead(name, ask)
        loaded = self._shards.find(name)
        group, before = self._group_for(loaded, name, ask)
        change = self._change(group, matched)
        answer = leave(change, ask) if is_leaving(ask) else heartbeat(change, ask)
        self._keep(loaded, change, before)
        await self.settled(name)
        return answer

    async def _match_ahead(self, name: str, ask: HeartbeatAsk) -> Matched:
        """In a thread: what a hostile pattern costs is nobody else's to wait for. Again where topics came meanwhile."""
        names: frozenset[str] = frozenset()
        matched: Matched = {}
        while patterns := self._patterns_due(name, ask):
            there = frozenset(self.topics(name).short_names())
            if patterns <= matched.keys() and there == names:
                break
            names, loop = there, asyncio.get_running_loop()
            matched = await loop.run_in_executor(self._broker.pattern_threads, match_all, patterns, names)
        return matched

    def _patterns_due(self, name: str, ask: HeartbeatAsk) -> frozenset[str]:
        group, version = self._shards.find(name).shard.group(name), self.topics(name).version
        wanted = frozenset({ask.topic_regex} if ask.topic_regex else ())
        if not isinstance(group, ConsumerGroup):
            return wanted
        is_known = ask.topic_regex in group.regexes and group.topics_seen is version
        return group.patterns_due(version) if is_known else group.patterns_due(version) | wanted

    def _group_for(
        self, loaded: Loaded[GroupShard], name: str, ask: HeartbeatAsk
    ) -> tuple[ConsumerGroup, list[GroupRecord]]:
        """The group, and what is to be written first where it was a classic one until now. BrokerError 69."""
        group = loaded.shard.group(name)
        if isinstance(group, ConsumerGroup):
            return group, []
        if ask.epoch != JOINING_EPOCH:
            raise BrokerError(ErrorCode.GROUP_ID_NOT_FOUND, "There is no such consumer group.")
        new = loaded.shard.new_consumer(name)
        if group is None:
            return new, []
        converted, records = migration.to_consumer(group, new.settings, self.topics(name), self._now())
        return converted, [group_record(name, None), *_encoded(records)]

    # --- members of the classic protocol in a group of the new one

    async def join(self, name: str, ask: JoinAsk, new_id: str) -> JoinAnswer:
        loaded = self._shards.find(name)
        change = self._change(self._found(loaded, name))
        try:
            answer = classic_members.join(change, ask, new_id)
            self._keep(loaded, change)
            await self.settled(name)
        except BrokerError as error:
            return JoinAnswer(error.code, member_id=ask.member_id)
        return answer

    async def sync(self, name: str, ask: SyncAsk) -> SyncAnswer:
        loaded = self._shards.find(name)
        group = self._found(loaded, name)
        try:
            answer = classic_members.sync(group, ask, self.topics(name), self._broker.clock.monotonic_ms())
            await self.settled(name)
        except BrokerError as error:
            if error.code is ErrorCode.REBALANCE_IN_PROGRESS:
                self._arm(loaded, name)  # its time to come has begun
            return SyncAnswer(error.code)
        return answer

    async def leave(self, name: str, member_id: str, instance_id: str | None) -> ErrorCode:
        loaded = self._shards.find(name)
        change = self._change(self._found(loaded, name))
        try:
            classic_members.leave(change, member_id, instance_id)
            self._keep(loaded, change)
            await self.settled(name)
        except BrokerError as error:
            return error.code
        return ErrorCode.NONE

    async def make_classic(self, name: str) -> None:
        """An empty group is whatever its next member speaks."""
        loaded = self._shards.find(name)
        group = self._found(loaded, name)
        self._keep(loaded, self._change(group), is_to_be_classic=True)
        await self.settled(name)

    # --- time

    def on_time(self, loaded: Loaded[GroupShard], group: ConsumerGroup) -> bool:
        """False where what is due could not be written: it is tried again a little later."""
        change = self._change(group)
        on_time(change)
        try:
            self._keep(loaded, change)
        except BrokerError as error:
            log.info("group %s: what is due is not written yet: %s", group.name, error)
            return False
        return True

    # --- carrying out

    def _found(self, loaded: Loaded[GroupShard], name: str) -> ConsumerGroup:
        group = loaded.shard.group(name)
        assert isinstance(group, ConsumerGroup), "looked at in the same turn of the loop"
        return group

    def _change(self, group: ConsumerGroup, matched: Matched | None = None) -> Change:
        """Where nothing was matched ahead, patterns keep what they had until the next heartbeat."""
        return Change(group, self.topics(group.name), self._now(), matched or {})

    def _keep(
        self,
        loaded: Loaded[GroupShard],
        change: Change,
        before: Sequence[GroupRecord] = (),
        *,
        is_to_be_classic: bool = False,
    ) -> None:
        """Append, then change. BrokerError where it cannot be appended: then nothing has happened."""
        name = change.group.name
        classic = None
        records = [*before, *_encoded(change.records)]
        if is_to_be_classic or (change.records and migration.is_downgrade_due(change.group, self._settings)):
            classic = migration.to_classic(change, self._settings)
            records += [*_encoded(change.group.removal()), group_record(name, group_value(classic))]
        self._append(loaded, name, records)
        was = loaded.shard.group(name)
        loaded.shard.groups[name] = classic or change.group
        if isinstance(was, ClassicGroup):
            self._classic.perform(loaded, was, was.end(ErrorCode.REBALANCE_IN_PROGRESS))
        if classic is not None and classic.members:
            self._classic.perform(loaded, classic, classic.rebalance(change.now.ms))
        self._arm(loaded, name)

    def _append(self, loaded: Loaded[GroupShard], name: str, records: Sequence[Pair]) -> None:
        if not records:
            return
        write = self._shards.write(loaded, records, is_replayed=False)
        if write.done():
            if write.result() is not ErrorCode.NONE:
                raise BrokerError(write.result())
            return
        self._writes[name] = write
        write.add_done_callback(lambda done: self._forget(name, done))

    def _forget(self, name: str, write: asyncio.Future[ErrorCode]) -> None:
        if self._writes.get(name) is write:
            del self._writes[name]

    async def settled(self, name: str) -> None:
        """All that this group wrote is acknowledged. BrokerError where it is not in time: it may be so later."""
        write = self._writes.get(name)
        if write is not None and (code := await acked(asyncio.shield(write))) is not ErrorCode.NONE:
            raise BrokerError(code)

    def _now(self) -> Now:
        return Now(self._broker.clock.monotonic_ms(), self._broker.clock.now_ms())


def _encoded(records: Sequence[ConsumerRecord]) -> list[GroupRecord]:
    return [GroupRecord(*encode(record)) for record in records]
