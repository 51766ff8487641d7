"""Coordinates the groups of the partitions of `__consumer_offsets` that this broker leads.

Each such partition is a shard: loaded when this broker begins to lead it, dropped when it stops. What a group decides
is carried out here: answers are given, the group is written and acknowledged before its members learn of it, one timer
per group calls it when something is due. Left out: KIP-848 groups, offsets inside transactions.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from broker_engine.errors import BrokerError, ErrorCode
from broker_engine.groups.classic import ClassicGroup, GroupSettings
from broker_engine.groups.effects import Effect, JoinAnswer, Reply, Store, SyncAnswer
from broker_engine.groups.member import JoinAsk, SyncAsk
from broker_engine.groups.placement import group_partition
from broker_engine.groups.records import GroupRecord
from broker_engine.groups.shard import GroupShard, NewOffset
from broker_engine.metadata.topics import OFFSETS_TOPIC
from broker_engine.names import CONSUMER_OFFSETS
from broker_engine.partition.core import ACKS_ALL
from broker_engine.records.builder import NewRecord, build_batch
from broker_engine.server.group_loading import load_shard
from broker_engine.server.local_partition import LocalPartition
from broker_engine.server.supervisor import Supervisor

if TYPE_CHECKING:
    from broker_engine.metadata.image import MetadataImage, TopicImage
    from broker_engine.server.broker import Broker

log = logging.getLogger(__name__)

_WRITE_TIMEOUT_S = 5.0
"""Kafka's offsets.commit.timeout.ms."""
_EXPIRY_INTERVAL_S = 600.0
"""Kafka's offsets.retention.check.interval.ms."""
_PRODUCE_VERSION = 11
_ELSEWHERE = frozenset(
    {ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.KAFKA_STORAGE_ERROR}
)


@dataclass(slots=True, eq=False)
class _Loaded:
    local: LocalPartition
    leader_epoch: int
    shard: GroupShard
    is_ready: bool = False
    timers: dict[str, asyncio.TimerHandle] = field(default_factory=dict)


class GroupCoordinator:
    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        config = broker.config
        self._settings = GroupSettings(
            initial_rebalance_delay_ms=config.group_initial_rebalance_delay_ms, size_max=config.group_max_size
        )
        self._loaded: dict[int, _Loaded] = {}
        self._tasks = Supervisor()
        self._is_running = False

    # --- which groups

    def partition_of(self, group: str) -> int | None:
        topic = self._broker.image.topic(OFFSETS_TOPIC)
        return None if topic is None else group_partition(group, topic.partition_count)

    def node_of(self, group: str) -> int | None:
        """The broker that coordinates it; None while there is none."""
        topic, index = self._broker.image.topic(OFFSETS_TOPIC), self.partition_of(group)
        if topic is None or index is None or topic.partitions[index].leader < 0:
            return None
        return topic.partitions[index].leader

    def ensure_topic(self) -> None:
        """Made with the first question for a coordinator, in the background."""
        if self._broker.image.topic(OFFSETS_TOPIC) is None:
            self._broker.first_use.create([OFFSETS_TOPIC])

    def follow(self, old: MetadataImage, new: MetadataImage) -> None:
        """A new image is shown, and replicas have their roles by it: load what we lead now, drop what we do not."""
        topic = new.topic(OFFSETS_TOPIC)
        if self._is_running and topic is not None and topic is not old.topic(OFFSETS_TOPIC):
            self._take_what_is_led(topic)

    def _take_what_is_led(self, topic: TopicImage) -> None:
        for index in topic.partitions:
            local = self._broker.partitions.find(topic.id, index)
            loaded = self._loaded.get(index)
            epoch = local.leader_epoch if local is not None and local.is_leader else None
            if loaded is not None and loaded.leader_epoch != epoch:
                self._drop(index)
                loaded = None
            if local is not None and epoch is not None and loaded is None:
                self._begin(index, local, epoch)

    async def stop(self) -> None:
        """Whoever waits for others looks for another coordinator."""
        self._is_running = False
        for index in list(self._loaded):
            self._drop(index)
        await self._tasks.stop()

    def _begin(self, index: int, local: LocalPartition, epoch: int) -> None:
        loaded = self._loaded[index] = _Loaded(local, epoch, GroupShard(self._settings))
        self._tasks.spawn(self._load(index, loaded), f"load {CONSUMER_OFFSETS}-{index}")

    async def _load(self, index: int, loaded: _Loaded) -> None:
        try:
            count = await load_shard(loaded.local, loaded.shard, self._broker.clock.monotonic_ms)
        except BrokerError as error:
            log.warning("%s-%d cannot be loaded: %s", CONSUMER_OFFSETS, index, error)
            return
        if self._loaded.get(index) is not loaded:
            return
        loaded.is_ready = True
        for group in loaded.shard.groups.values():
            self._arm(loaded, group)
        if count:
            log.info("%s-%d: %d groups from %d records", CONSUMER_OFFSETS, index, len(loaded.shard.groups), count)

    def _drop(self, index: int) -> None:
        loaded = self._loaded.pop(index)
        for timer in loaded.timers.values():
            timer.cancel()
        for group in loaded.shard.groups.values():
            self._perform(loaded, group, group.end(ErrorCode.NOT_COORDINATOR))

    def _find(self, name: str) -> _Loaded:
        """BrokerError 15, 16 or 14: the client asks again, maybe elsewhere."""
        index = self.partition_of(name)
        if index is None:
            raise BrokerError(ErrorCode.COORDINATOR_NOT_AVAILABLE)
        loaded = self._loaded.get(index)
        if loaded is None or not loaded.local.is_leader or self._broker.is_self_fenced:
            raise BrokerError(ErrorCode.NOT_COORDINATOR)
        if not loaded.is_ready:
            raise BrokerError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
        return loaded

    def shards(self) -> Iterator[GroupShard]:
        for index in sorted(self._loaded):
            loaded = self._loaded[index]
            if not loaded.is_ready:
                raise BrokerError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
            yield loaded.shard

    def shard_of(self, name: str) -> GroupShard:
        return self._find(name).shard

    # --- members

    async def join(self, name: str, ask: JoinAsk) -> JoinAnswer:
        loaded = self._find(name)
        group = loaded.shard.group(name)
        if group is None and ask.member_id:
            return JoinAnswer(ErrorCode.UNKNOWN_MEMBER_ID, member_id=ask.member_id)
        group = loaded.shard.group_or_new(name, self._broker.clock.now_ms())
        done: asyncio.Future[JoinAnswer] = asyncio.get_running_loop().create_future()
        self._perform(loaded, group, group.join(ask, done, self._now_ms(), self._new_member_id))
        return await done

    async def sync(self, name: str, ask: SyncAsk) -> SyncAnswer:
        loaded = self._find(name)
        group = loaded.shard.group(name)
        if group is None:
            return SyncAnswer(ErrorCode.UNKNOWN_MEMBER_ID)
        done: asyncio.Future[SyncAnswer] = asyncio.get_running_loop().create_future()
        self._perform(loaded, group, group.sync(ask, done, self._now_ms()))
        return await done

    def heartbeat(self, name: str, member_id: str, instance_id: str | None, generation: int) -> ErrorCode:
        group = self._find(name).shard.group(name)
        if group is None:
            return ErrorCode.UNKNOWN_MEMBER_ID
        return group.heartbeat(member_id, instance_id, generation, self._now_ms())

    def leave(self, name: str, members: Iterable[tuple[str, str | None]]) -> list[ErrorCode]:
        loaded = self._find(name)
        group = loaded.shard.group(name)
        codes = []
        for member_id, instance_id in members:
            code = ErrorCode.UNKNOWN_MEMBER_ID
            if group is not None:
                code, effects = group.leave(member_id, instance_id, self._now_ms())
                self._perform(loaded, group, effects)
            codes.append(code)
        return codes

    def _new_member_id(self, ask: JoinAsk) -> str:
        return f"{ask.instance_id or ask.client_id}-{self._broker.randomness.uuid()}"

    # --- offsets

    def check_commit(self, name: str, member_id: str, instance_id: str | None, generation: int) -> ErrorCode:
        group = self._find(name).shard.group(name)
        if group is not None:
            return group.check_commit(member_id, instance_id, generation, self._now_ms())
        return ErrorCode.NONE if generation < 0 else ErrorCode.ILLEGAL_GENERATION

    async def commit(self, name: str, offsets: Sequence[NewOffset]) -> ErrorCode:
        loaded = self._find(name)
        records = loaded.shard.offset_records(name, offsets, self._broker.clock.now_ms())
        return await self._write_and_replay(loaded, records)

    async def delete_group(self, name: str) -> ErrorCode:
        loaded = self._find(name)
        group = loaded.shard.group(name)
        if group is None and not loaded.shard.committed(name):
            return ErrorCode.GROUP_ID_NOT_FOUND
        if group is not None and group.members:
            return ErrorCode.NON_EMPTY_GROUP
        return await self._write_and_replay(loaded, loaded.shard.removal(name))

    async def delete_offsets(self, name: str, places: Iterable[tuple[str, int]]) -> ErrorCode:
        loaded = self._find(name)
        return await self._write_and_replay(loaded, loaded.shard.offset_removals(name, places))

    def start(self) -> None:
        """The broker serves: partitions that it leads already are loaded."""
        self._is_running = True
        topic = self._broker.image.topic(OFFSETS_TOPIC)
        if topic is not None:
            self._take_what_is_led(topic)
        self._tasks.keep_running(self._expire, "expiry of offsets")

    async def _expire(self) -> None:
        retention_ms = self._broker.config.offsets_retention_minutes * 60_000
        while True:
            await asyncio.sleep(_EXPIRY_INTERVAL_S)
            for loaded in [each for each in self._loaded.values() if each.is_ready]:
                records = loaded.shard.expired(self._broker.clock.now_ms(), retention_ms)
                if records and (code := await self._write_and_replay(loaded, records)) is not ErrorCode.NONE:
                    log.info("expired offsets are not removed yet: %s", code.name)

    # --- carrying out

    def _perform(self, loaded: _Loaded, group: ClassicGroup, effects: Iterable[Effect]) -> None:
        for effect in effects:
            if isinstance(effect, Reply):
                waiter = effect.waiter
                assert isinstance(waiter, asyncio.Future)
                if not waiter.done():
                    waiter.set_result(effect.answer)
            else:
                self._store(loaded, group, effect)
        self._arm(loaded, group)

    def _store(self, loaded: _Loaded, group: ClassicGroup, store: Store) -> None:
        acked = self._write(loaded, [loaded.shard.stored_group(group, self._broker.clock.now_ms())], is_replayed=False)
        self._tasks.spawn(self._report(loaded, group, store, acked), f"store group {group.name}")

    async def _report(
        self, loaded: _Loaded, group: ClassicGroup, store: Store, acked: asyncio.Future[ErrorCode]
    ) -> None:
        code = await self._acked(acked)
        self._perform(loaded, group, group.on_stored(store.generation, code, self._now_ms()))

    async def _write_and_replay(self, loaded: _Loaded, records: Sequence[GroupRecord]) -> ErrorCode:
        """Seen by others when it is acknowledged, not before."""
        if not records:
            return ErrorCode.NONE
        return await self._acked(self._write(loaded, records, is_replayed=True))

    def _write(
        self, loaded: _Loaded, records: Sequence[GroupRecord], *, is_replayed: bool
    ) -> asyncio.Future[ErrorCode]:
        """In the log when this returns; acknowledged when the future says so."""
        done: asyncio.Future[ErrorCode] = asyncio.get_running_loop().create_future()

        def on_acked(code: ErrorCode) -> None:
            if code is ErrorCode.NONE and is_replayed:
                # Here and not where the future is awaited: acks come in the order of the log, tasks in any.
                for record in records:
                    loaded.shard.replay(record.key, record.value, self._now_ms())
            if not done.done():
                done.set_result(_as_coordinator(code))

        now_ms = self._broker.clock.now_ms()
        batch = build_batch([NewRecord(now_ms, record.key, record.value) for record in records])
        try:
            appended = loaded.local.append(memoryview(batch), produce_version=_PRODUCE_VERSION, acks=ACKS_ALL)
        except BrokerError as error:
            done.set_result(_as_coordinator(error.code))
            return done
        loaded.local.when_acked(appended.end_offset, on_acked)
        return done

    async def _acked(self, acked: asyncio.Future[ErrorCode]) -> ErrorCode:
        try:
            async with asyncio.timeout(_WRITE_TIMEOUT_S):
                return await acked
        except TimeoutError:
            return ErrorCode.COORDINATOR_NOT_AVAILABLE

    def _arm(self, loaded: _Loaded, group: ClassicGroup) -> None:
        timer = loaded.timers.pop(group.name, None)
        if timer is not None:
            timer.cancel()
        if group.is_nothing and loaded.shard.group(group.name) is group:
            del loaded.shard.groups[group.name]
        deadline_ms = group.next_deadline_ms
        if deadline_ms is not None and loaded.shard.group(group.name) is group:
            wait_s = max(0, deadline_ms - self._now_ms()) / 1000
            loaded.timers[group.name] = asyncio.get_running_loop().call_later(wait_s, self._on_time, loaded, group)

    def _on_time(self, loaded: _Loaded, group: ClassicGroup) -> None:
        loaded.timers.pop(group.name, None)
        self._perform(loaded, group, group.on_time(self._now_ms()))

    def _now_ms(self) -> int:
        return self._broker.clock.monotonic_ms()


def _as_coordinator(code: ErrorCode) -> ErrorCode:
    """A partition's refusal in the words of a coordinator."""
    if code is ErrorCode.NONE:
        return code
    if code is ErrorCode.MESSAGE_TOO_LARGE:
        return ErrorCode.INVALID_COMMIT_OFFSET_SIZE
    return ErrorCode.NOT_COORDINATOR if code in _ELSEWHERE else ErrorCode.COORDINATOR_NOT_AVAILABLE
