"""Coordinates the groups of the partitions of `__consumer_offsets` that this broker leads.

Each such partition is a shard (shards.py). Here is who asks what of which group, commits, and one timer per group that
calls it when something is due. What a group decides is carried out in classic_groups.py and consumer_groups.py, what
goes in group_removals.py. Groups change when their records are appended, offsets when they are acknowledged.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING

from broker_engine.errors import ErrorCode
from broker_engine.groups.classic import ClassicGroup
from broker_engine.groups.consumer import classic_members
from broker_engine.groups.consumer.commits import CommitAsk, check_commit, check_fetch
from broker_engine.groups.consumer.group import ConsumerGroup
from broker_engine.groups.consumer.member import HeartbeatAnswer, HeartbeatAsk
from broker_engine.groups.effects import JoinAnswer, SyncAnswer
from broker_engine.groups.joining import join
from broker_engine.groups.member import JoinAsk, SyncAsk
from broker_engine.groups.settings import ConsumerSettings
from broker_engine.groups.shard import AnyGroup, GroupShard, NewOffset
from broker_engine.groups.states import GroupState
from broker_engine.metadata.topics import OFFSETS_TOPIC
from broker_engine.names import CONSUMER_OFFSETS
from broker_engine.server.classic_groups import ClassicGroups
from broker_engine.server.consumer_groups import ConsumerGroups
from broker_engine.server.group_loading import replay_stored
from broker_engine.server.group_removals import GroupRemovals
from broker_engine.server.group_settings import consumer_settings, group_settings
from broker_engine.server.shards import Loaded, Pair, Shards, StoredBatch, acked
from broker_engine.server.supervisor import Supervisor

if TYPE_CHECKING:
    from broker_engine.metadata.image import MetadataImage
    from broker_engine.server.broker import Broker

log = logging.getLogger(__name__)

_RETRY_S = 1.0
"""After something that was due could not be written."""


class GroupCoordinator:
    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._settings = group_settings(broker.config)
        self._tasks = Supervisor()
        self._shards = Shards(
            broker,
            OFFSETS_TOPIC,
            self,
            self._tasks,
            too_large=ErrorCode.INVALID_COMMIT_OFFSET_SIZE,
            is_committed_first=True,
        )
        self._classic = ClassicGroups(broker, self._shards, self._tasks, self._arm)
        self._consumer = ConsumerGroups(broker, self._shards, self._classic, self._settings, self._arm)
        self._removals = GroupRemovals(broker, self._shards, self._arm)

    # --- which groups

    def partition_of(self, group: str) -> int | None:
        return self._shards.partition_of(group)

    def node_of(self, group: str) -> int | None:
        """The broker that coordinates it; None while there is none."""
        return self._shards.node_of(group)

    def ensure_topic(self) -> None:
        self._shards.ensure_topic()

    def follow(self, old: MetadataImage, new: MetadataImage) -> None:
        self._shards.follow(old, new)
        if new.group_configs is not old.group_configs:
            for loaded in self._shards.ready():
                self._take_settings(loaded)

    def _take_settings(self, loaded: Loaded[GroupShard]) -> None:
        """And the timers that follow from them."""
        for name, group in list(loaded.shard.groups.items()):
            if isinstance(group, ConsumerGroup):
                group.settings = self.settings_of(name)
            self._arm(loaded, name)

    def settings_of(self, name: str) -> ConsumerSettings:
        return consumer_settings(self._broker.config, self._settings.consumer, name, self._broker.image)

    def start(self) -> None:
        """The broker serves."""
        self._shards.start()
        expiry = partial(self._removals.keep_expiring, self.subscribed_topics)
        self._tasks.keep_running(expiry, "expiry of offsets")

    def look_again(self) -> None:
        """A partition of ours was opened late."""
        self._shards.look_again()

    async def stop(self) -> None:
        """Whoever waits for others looks for another coordinator."""
        self._shards.stop()
        await self._tasks.stop()

    def shards(self) -> Iterator[GroupShard]:
        return (loaded.shard for loaded in self._shards.all())

    def ready(self) -> list[Loaded[GroupShard]]:
        """Those that are loaded: telemetry tells of them."""
        return self._shards.ready()

    def loaded(self, name: str) -> Loaded[GroupShard]:
        """The shard of a group, with its partition. BrokerError 15, 16 or 14."""
        return self._shards.find(name)

    def is_loaded(self, index: int) -> bool:
        return self._shards.at(index) is not None

    def on_marker(self, index: int, producer_id: int, producer_epoch: int, is_commit: bool) -> None:
        """A transaction's end in a partition of the offsets' topic is acknowledged."""
        loaded = self._shards.at(index)
        if loaded is not None:
            loaded.shard.end_transaction(producer_id, is_commit=is_commit)

    def shard_of(self, name: str) -> GroupShard:
        return self._shards.find(name).shard

    # --- what shards.py asks

    def new_shard(self) -> GroupShard:
        return GroupShard(self._settings, self.settings_of)

    def replay_stored(self, shard: GroupShard, batch: StoredBatch) -> None:
        replay_stored(shard, batch, self._now_ms())

    def replay_written(self, shard: GroupShard, records: Sequence[Pair]) -> None:
        for key, value in records:
            shard.replay_offset(key, value)

    def on_loaded(self, loaded: Loaded[GroupShard], record_count: int) -> None:
        groups = loaded.shard.groups
        loaded.shard.begin_here(self._now_ms())
        self._classic.on_loaded(loaded)
        self._take_settings(loaded)  # they may have changed while it was read
        if record_count:
            log.info("%s-%d: %d groups from %d records", CONSUMER_OFFSETS, loaded.index, len(groups), record_count)

    def on_dropped(self, loaded: Loaded[GroupShard]) -> None:
        for group in list(loaded.shard.groups.values()):
            if isinstance(group, ClassicGroup):
                self._classic.perform(loaded, group, group.end(ErrorCode.NOT_COORDINATOR))

    # --- members of the classic protocol

    async def join(self, name: str, ask: JoinAsk) -> JoinAnswer:
        # Again after each wait: meanwhile a member may have come that speaks the consumer protocol.
        while isinstance(group := self.shard_of(name).group(name), ConsumerGroup) and not group.members:
            await self._consumer.make_classic(name)
        loaded = self._shards.find(name)
        if group is None and ask.member_id:
            return JoinAnswer(ErrorCode.UNKNOWN_MEMBER_ID, member_id=ask.member_id)
        if isinstance(group, ConsumerGroup):
            return await self._consumer.join(name, ask, self._new_member_id(ask))
        classic = loaded.shard.classic_or_new(name, self._broker.clock.now_ms())
        done: asyncio.Future[JoinAnswer] = asyncio.get_running_loop().create_future()
        self._classic.perform(loaded, classic, join(classic, ask, done, self._now_ms(), self._new_member_id))
        return await done

    async def sync(self, name: str, ask: SyncAsk) -> SyncAnswer:
        loaded = self._shards.find(name)
        group = loaded.shard.group(name)
        if group is None:
            return SyncAnswer(ErrorCode.UNKNOWN_MEMBER_ID)
        if isinstance(group, ConsumerGroup):
            return await self._consumer.sync(name, ask)
        done: asyncio.Future[SyncAnswer] = asyncio.get_running_loop().create_future()
        self._classic.perform(loaded, group, group.sync(ask, done, self._now_ms()))
        return await done

    def heartbeat(self, name: str, member_id: str, instance_id: str | None, generation: int) -> ErrorCode:
        loaded = self._shards.find(name)
        group = loaded.shard.group(name)
        if group is None:
            return ErrorCode.UNKNOWN_MEMBER_ID
        if isinstance(group, ClassicGroup):
            return group.heartbeat(member_id, instance_id, generation, self._now_ms())
        code = classic_members.heartbeat(group, member_id, instance_id, generation, self._now_ms())
        if code is ErrorCode.REBALANCE_IN_PROGRESS:
            self._arm(loaded, name)  # its time to come has begun
        return code

    async def leave(self, name: str, members: Iterable[tuple[str, str | None]]) -> list[ErrorCode]:
        return [await self._leave(name, *member) for member in members]

    async def _leave(self, name: str, member_id: str, instance_id: str | None) -> ErrorCode:
        loaded = self._shards.find(name)
        group = loaded.shard.group(name)
        if group is None:
            return ErrorCode.UNKNOWN_MEMBER_ID
        if isinstance(group, ConsumerGroup):
            return await self._consumer.leave(name, member_id, instance_id)
        code, effects = group.leave(member_id, instance_id, self._now_ms())
        self._classic.perform(loaded, group, effects)
        return code

    # --- members of the consumer protocol

    def quick_heartbeat(self, name: str, ask: HeartbeatAsk) -> HeartbeatAnswer | None:
        return self._consumer.quick_heartbeat(name, ask)

    async def consumer_heartbeat(self, name: str, ask: HeartbeatAsk) -> HeartbeatAnswer:
        return await self._consumer.heartbeat(name, ask)

    def new_member_id(self) -> str:
        return str(self._broker.randomness.uuid())

    def _new_member_id(self, ask: JoinAsk) -> str:
        return f"{ask.instance_id or ask.client_id}-{self._broker.randomness.uuid()}"

    # --- offsets

    def check_commit(self, name: str, ask: CommitAsk) -> ErrorCode:
        group = self._shards.find(name).shard.group(name)
        if isinstance(group, ConsumerGroup):
            return check_commit(group, ask, self._now_ms())
        if group is not None:
            return group.check_commit(ask.member_id, ask.instance_id, ask.epoch, self._now_ms())
        if ask.epoch < 0:
            return ErrorCode.NONE
        return ErrorCode.GROUP_ID_NOT_FOUND if ask.knows_epochs else ErrorCode.ILLEGAL_GENERATION

    def check_fetch(self, name: str, member_id: str | None, epoch: int) -> ErrorCode:
        """May this member read the group's offsets?"""
        group = self._shards.find(name).shard.group(name)
        if isinstance(group, ConsumerGroup):
            return check_fetch(group, member_id, epoch)
        return ErrorCode.NONE

    async def commit(self, name: str, offsets: Sequence[NewOffset]) -> ErrorCode:
        loaded = self._shards.find(name)
        records = loaded.shard.offset_records(name, offsets, self._broker.clock.now_ms())
        if not records:
            return ErrorCode.NONE
        end = loaded.shard.begin_commit(name)
        return await acked(self._shards.write(loaded, records, on_settled=lambda _code: end()))

    async def delete_group(self, name: str) -> ErrorCode:
        return await self._removals.delete_group(name)

    async def delete_offsets(self, name: str, places: Iterable[tuple[str, int]]) -> ErrorCode:
        return await self._removals.delete_offsets(name, places)

    def subscribed_topics(self, group: AnyGroup) -> frozenset[str] | None:
        """What a living group reads, as physical texts; None where its members' own bytes do not tell."""
        if isinstance(group, ConsumerGroup):
            return group.subscribed_topics()
        is_settled = group.state is GroupState.STABLE
        named = group.roster.subscribed_topics(group.protocol) if is_settled else None
        topics = self._consumer.topics(group.name)
        return None if named is None else frozenset(topics.physical(name) for name in named)

    # --- time

    def _arm(self, loaded: Loaded[GroupShard], name: str) -> None:
        timer = loaded.timers.pop(name, None)
        if timer is not None:
            timer.cancel()
        group = loaded.shard.group(name)
        deadline_ms = None if group is None else group.next_deadline_ms
        if deadline_ms is not None and self._shards.is_current(loaded):
            self._arm_in(loaded, name, max(0, deadline_ms - self._now_ms()) / 1000)

    def _arm_in(self, loaded: Loaded[GroupShard], name: str, wait_s: float) -> None:
        loaded.timers[name] = asyncio.get_running_loop().call_later(wait_s, self._on_time, loaded, name)

    def _on_time(self, loaded: Loaded[GroupShard], name: str) -> None:
        loaded.timers.pop(name, None)
        group = loaded.shard.group(name)
        if isinstance(group, ClassicGroup):
            self._classic.perform(loaded, group, group.on_time(self._now_ms()))
        elif group is not None and not self._consumer.on_time(loaded, group):
            self._arm_in(loaded, name, _RETRY_S)

    def _now_ms(self) -> int:
        return self._broker.clock.monotonic_ms()
