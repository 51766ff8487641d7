"""All replicas of this broker: opened, given their roles, changed and retired as the metadata image says.

`open_missing` runs before an image is shown, so that a topic that a client can see can also be written;
`retire_removed` runs after. Logs are opened and deleted in threads; the rest happens on the loop.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import TypeVar
from uuid import UUID

from broker_engine.clock import Clock, Randomness
from broker_engine.config import BROKER_CONFIGS, BrokerConfig, TopicConfig
from broker_engine.errors import BrokerError, ErrorCode
from broker_engine.log.files import Files
from broker_engine.log.removals import Removals
from broker_engine.log.replica_log import ReplicaLog
from broker_engine.metadata.image import EMPTY_IMAGE, MetadataImage, PartitionImage, TopicImage
from broker_engine.metadata.parts import RECOVERING
from broker_engine.names import deleted_directory, directory, stray_directory
from broker_engine.partition.core import IsrProposal
from broker_engine.server.checkpoints import Offsets, TopicPartition
from broker_engine.server.collector import KeptLogs
from broker_engine.server.local_partition import LocalPartition
from broker_engine.server.roles import RoleMaker, follow_image
from broker_engine.server.saved_offsets import Saved, SavedOffsets
from broker_engine.server.topic_settings import log_config, partition_settings

log = logging.getLogger(__name__)

OPEN_THREAD_COUNT = 2
"""What a crash left is scanned, and checksums and reads need no lock of the interpreter. More threads fight for it."""
CLEAN_OPEN_THREAD_COUNT = 1
"""What was stopped cleanly is hardly read: even two fight (on two busy cores 12 s of CPU for 10,000 logs, one 8)."""
OPEN_CHUNK_SIZE = 64
"""Logs that a thread opens or closes in one go: a hop between threads costs as much as opening a log."""
SHARED_SYNC_MIN = 16

PartitionKey = tuple[UUID, int]
T = TypeVar("T")
R = TypeVar("R")


@dataclass(slots=True)
class _Wanted:
    topic: TopicImage
    index: int
    state: PartitionImage
    config: TopicConfig


class Partitions:
    def __init__(
        self,
        *,
        node_id: int,
        files: Files,
        clock: Clock,
        randomness: Randomness,
        config: BrokerConfig,
        request_flush: Callable[[LocalPartition], None],
        saved: SavedOffsets,
    ) -> None:
        self._node_id = node_id
        self._files = files
        self._clock = clock
        self._randomness = randomness
        self._config = config
        self._request_flush = request_flush
        self._saved = saved
        self._image = EMPTY_IMAGE
        """The newest one, which may not be shown yet."""
        self._roles = RoleMaker(node_id, config, clock, self._is_eligible)
        self._by_key: dict[PartitionKey, LocalPartition] = {}
        self._unopened: dict[PartitionKey, None] = {}
        """Ours by the image, but their logs could not be opened."""
        self.open_thread_count = OPEN_THREAD_COUNT
        self._kept_logs = KeptLogs()
        self.removals = Removals(clock)
        """Files of segments that are in none of the logs any more: whoever looks after the disk removes them."""
        self.on_role: Callable[[LocalPartition], None] = lambda local: None
        """Told of every replica that was opened, has another role or term, or is retired."""
        self.propose_isr: Callable[[LocalPartition, IsrProposal], None] = lambda local, proposal: None
        self.on_doubted: Callable[[LocalPartition, int], None] = lambda local, offset: None
        """Told where readers met bytes that do not verify."""
        self.after_removal: Callable[[], Awaitable[None]] | None = None
        """Writes the checkpoints: what they say of a removed topic must not meet another one of its name."""
        self.changed: dict[LocalPartition, None] = {}
        """Whose offsets or size changed since somebody last cleared this (telemetry)."""

    def __len__(self) -> int:
        return len(self._by_key)

    def all(self) -> Iterable[LocalPartition]:
        return self._by_key.values()

    def find(self, topic_id: UUID, index: int) -> LocalPartition | None:
        return self._by_key.get((topic_id, index))

    async def open_missing(self, old: MetadataImage, new: MetadataImage) -> None:
        """Open what `new` gives to this broker, and pass on what changed of the rest."""
        self._image = new
        if self._unopened:
            self._forget_strangers()
        wanted = []
        for topic in _changed_topics(old, new):
            wanted += await self._follow_topic(topic, old.topics.get(topic.id))
        if wanted:
            await self._make_room(wanted, old, new)
            await self._open_all(wanted)
        if old.brokers is not new.brokers:
            self._admit_replicas()

    @property
    def unopened_count(self) -> int:
        return len(self._unopened)

    async def open_unopened(self) -> int:
        """Tries those again whose logs could not be opened; answers how many could now. Never beside `open_missing`."""
        wanted = []
        for topic_id, index in self._unopened:
            topic = self._image.topics[topic_id]
            state = topic.partitions[index]
            wanted.append(_Wanted(topic, index, state, self._resolve(topic, state.replication_factor, {})))
        await self._open_all(wanted)
        return len(wanted) - len(self._unopened)

    def _forget_strangers(self) -> None:
        """Topics that are gone, and what is given to others."""
        self._unopened = {key: None for key in self._unopened if self._is_ours(*key)}
        self._saved.keep_only(self._unopened_names())

    def _is_ours(self, topic_id: UUID, index: int) -> bool:
        topic = self._image.topics.get(topic_id)
        return topic is not None and self._node_id in topic.partitions[index].replicas

    def _unopened_names(self) -> set[TopicPartition]:
        return {(self._image.topics[topic_id].name, index) for topic_id, index in self._unopened}

    async def _follow_topic(self, topic: TopicImage, before: TopicImage | None) -> list[_Wanted]:
        """What changed of the partitions that are open here, and what is to be opened. Costs what changed."""
        wanted, configs = [], dict[int, TopicConfig]()
        has_other_configs = before is None or before.configs is not topic.configs
        for index, state in topic.partitions.items():
            old_state = None if before is None else before.partitions.get(index)
            local = self._by_key.get((topic.id, index))
            if local is None and self._node_id in state.replicas:
                config = self._resolve(topic, state.replication_factor, configs)
                wanted.append(_Wanted(topic, index, state, config))
            if local is None or (old_state is state and not has_other_configs):
                continue
            is_same_factor = old_state is not None and old_state.replication_factor == state.replication_factor
            if has_other_configs or not is_same_factor:
                self._update(local, self._resolve(topic, state.replication_factor, configs))
            if old_state is not state:
                await self._follow(local, state)
        return wanted

    async def _make_room(self, wanted: list[_Wanted], old: MetadataImage, new: MetadataImage) -> None:
        """One image may tell that a topic was deleted and that another one has its name: the directory's, too."""
        names = {each.topic.name for each in wanted}
        await self._retire([local for local in self._of_removed_topics(old, new) if local.name in names], new)

    async def _open_all(self, wanted: list[_Wanted]) -> None:
        self._unopened |= {(each.topic.id, each.index): None for each in wanted}
        with self._kept_logs.opening(len(wanted)):
            opened = await in_threads(self._open_several, wanted, thread_count=self.open_thread_count)
        await asyncio.to_thread(self._sync_parents, opened)
        for local in opened:
            del self._unopened[local.topic_id, local.index]
            self._by_key[local.topic_id, local.index] = local
            self._note_changed(local)
            self.on_role(local)
        self._saved.keep_only(self._unopened_names())

    def _admit_replicas(self) -> None:
        """Who was fenced or unknown may be in sync now: followers of idle partitions do not fetch them again."""
        for local in self._by_key.values():
            core = local.leading
            if core is not None and len(core.isr) < len(core.replicas):
                local.perform(core.admit())

    async def _follow(self, local: LocalPartition, state: PartitionImage) -> None:
        await local.settled()
        if follow_image(local, state, self._roles):
            log.debug("%s-%d: epoch %d, led by %d", local.name, local.index, state.leader_epoch, state.leader)
            if local.is_leader and state.leader_recovery_state == RECOVERING:
                text = "%s-%d is led here from %d on by an unclean election: committed records may be lost"
                log.warning(text, local.name, local.index, local.log.log_end_offset)
            self.on_role(local)

    def broker_setting(self, name: str, default: int) -> int:
        """A number that may be changed while the broker runs: its own, else every broker's."""
        own, all_brokers = (self._image.broker_configs.get(key, {}) for key in (str(self._node_id), ""))
        text = own.get(name, all_brokers.get(name))
        if text is None:
            return default
        value = BROKER_CONFIGS[name].parse(text)
        assert isinstance(value, int | float), "only numbers are asked for"
        return int(value)

    def _is_eligible(self, broker_id: int, broker_epoch: int) -> bool:
        """May this life of a broker be in sync?"""
        broker = self._image.brokers.get(broker_id)
        return broker is not None and broker.epoch == broker_epoch and broker.is_active

    async def retire_removed(self, old: MetadataImage, new: MetadataImage) -> None:
        """Close and delete the logs of what is gone, or given to others. Their directories have other names when this
        returns.
        """
        await self._retire([*self._of_removed_topics(old, new), *self._given_away(old, new)], new)

    async def _retire(self, removed: list[LocalPartition], new: MetadataImage) -> None:
        for local in removed:
            del self._by_key[local.topic_id, local.index]
            self.changed.pop(local, None)
            is_gone = local.topic_id not in new.topics
            local.retire(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION if is_gone else ErrorCode.NOT_LEADER_OR_FOLLOWER)
            self.on_role(local)
        for local in removed:
            await local.settled()
            await asyncio.to_thread(self._delete, local)
        self._kept_logs.note_closed(len(removed))
        if removed and self.after_removal is not None:
            await self.after_removal()

    def _of_removed_topics(self, old: MetadataImage, new: MetadataImage) -> Iterable[LocalPartition]:
        for topic_id, topic in old.topics.items():
            if topic_id not in new.topics:
                found = (self._by_key.get((topic_id, index)) for index in topic.partitions)
                yield from (local for local in found if local is not None)

    def _given_away(self, old: MetadataImage, new: MetadataImage) -> Iterable[LocalPartition]:
        """A reassignment took our replica out."""
        for topic in _changed_topics(old, new):
            for index, state in topic.partitions.items():
                if self._node_id not in state.replicas:
                    local = self._by_key.get((topic.id, index))
                    if local is not None:
                        yield local

    # --- for the checkpoints: what is open, and what could not be opened yet as the last ones have it

    def recovery_points(self) -> Offsets:
        return self._with_own(self._saved.recovery_points, [each.recovery_point for each in self.all()])

    def log_starts(self) -> Offsets:
        return self._with_own(self._saved.log_starts, [each.log_start_offset for each in self.all()])

    def high_watermarks(self) -> Offsets:
        return self._with_own(self._saved.high_watermarks, [each.high_watermark for each in self.all()])

    def _with_own(self, saved: dict[TopicPartition, int], offsets: list[int]) -> Offsets:
        """A moment's offsets, to be gone through once. Pairs of all of them at once would call the collector."""
        own = zip([each.topic_partition for each in self.all()], offsets, strict=True)
        return chain(list(saved.items()), own)

    async def close_all(self) -> None:
        """For a clean stop, after everything was flushed."""
        await in_threads(_close_several, list(self._by_key.values()))

    def _propose_isr(self, local: LocalPartition, proposal: IsrProposal) -> None:
        self.propose_isr(local, proposal)

    def _doubt(self, local: LocalPartition, offset: int) -> None:
        self.on_doubted(local, offset)

    def _note_changed(self, local: LocalPartition) -> None:
        self.changed[local] = None

    def _resolve(self, topic: TopicImage, factor: int, known: dict[int, TopicConfig]) -> TopicConfig:
        """By the partition's own factor, as the controller does: both must ask for the same number in sync."""
        if factor not in known:
            known[factor] = TopicConfig.resolve(topic.configs, self._config, replication_factor=factor)
        return known[factor]

    def _update(self, local: LocalPartition, config: TopicConfig) -> None:
        local.configure(config, partition_settings(config, self._config))

    def _open_several(self, wanted: Sequence[_Wanted]) -> list[LocalPartition]:
        opened = []
        for each in wanted:
            try:
                opened.append(self._open(each))
            except BrokerError as error:
                # One bad log must not keep the others from serving: it answers as a partition without a leader here,
                # and is tried again (reopening.py).
                log.error("cannot open %s-%d: %s", each.topic.name, each.index, error)
        return opened

    def _sync_parents(self, opened: Sequence[LocalPartition]) -> None:
        """Once for all of them, or every log would sync the data directory with its first flush."""
        parents: dict[str, list[ReplicaLog]] = {}
        for local in opened:
            for path in local.log.unsynced_parents():
                parents.setdefault(path, []).append(local.log)
        for path, logs in parents.items():
            if len(logs) < SHARED_SYNC_MIN:
                continue  # each log does it itself, with its first flush
            self._files.sync_dir(path)
            for each in logs:
                each.note_dir_synced(path)

    def _open(self, wanted: _Wanted) -> LocalPartition:
        """In a thread: scans, syncs, replays the producers' state."""
        saved = self._saved.of((wanted.topic.name, wanted.index))
        opened = self._open_log(wanted, saved)
        opened.removals = self.removals
        core = self._roles.first_core(wanted.state, wanted.config, opened, saved.high_watermark)
        core.restore(
            opened.producer_snapshots(),
            opened.iter_batches,
            self._clock.monotonic_ms(),
            unread_end_offset=opened.unread_end_offset,
        )
        return LocalPartition(
            name=wanted.topic.name,
            index=wanted.index,
            topic_id=wanted.topic.id,
            log=opened,
            core=core,
            leader_id=wanted.state.leader,
            config=wanted.config,
            clock=self._clock,
            request_flush=self._request_flush,
            on_changed=self._note_changed,
            propose_isr=self._propose_isr,
            on_doubted=self._doubt,
        )

    def _open_log(self, wanted: _Wanted, saved: Saved) -> ReplicaLog:
        name, index = wanted.topic.name, wanted.index
        try:
            return self._open_directory(wanted, saved)
        except BrokerError as error:
            if error.code is not ErrorCode.INCONSISTENT_TOPIC_ID:
                raise
        # A topic of this name was deleted while we were away: its records are not this topic's.
        aside = stray_directory(name, index, self._randomness.uuid().hex)
        log.warning("%s-%d has another topic's directory: kept as %s", name, index, aside)
        self._files.rename(directory(name, index), aside)
        return self._open_directory(wanted, Saved())

    def _open_directory(self, wanted: _Wanted, saved: Saved) -> ReplicaLog:
        return ReplicaLog.open(
            self._files,
            directory(wanted.topic.name, wanted.index),
            log_config(wanted.config),
            self._clock,
            topic_id=wanted.topic.id,
            recovery_point=saved.recovery_point,
            log_start_offset=saved.log_start_offset,
            jitter=self._randomness.unit,
        )

    def _delete(self, local: LocalPartition) -> None:
        renamed_to = deleted_directory(local.name, local.index, self._randomness.uuid().hex)
        try:
            local.log.delete(renamed_to=renamed_to)
        except OSError as error:
            log.error("cannot delete the files of %s-%d: %s", local.name, local.index, error)


def _close_several(partitions: Sequence[LocalPartition]) -> list[None]:
    for local in partitions:
        local.log.close()
    return []


async def in_threads(
    work: Callable[[Sequence[T]], list[R]], items: Sequence[T], *, thread_count: int = OPEN_THREAD_COUNT
) -> list[R]:
    """All results, in the order of their items; a few threads, in chunks that are worth the way."""
    gate = asyncio.Semaphore(thread_count)

    async def run(chunk: Sequence[T]) -> list[R]:
        async with gate:
            return await asyncio.to_thread(work, chunk)

    chunks = [items[start : start + OPEN_CHUNK_SIZE] for start in range(0, len(items), OPEN_CHUNK_SIZE)]
    return [result for results in await asyncio.gather(*map(run, chunks)) for result in results]


def _changed_topics(old: MetadataImage, new: MetadataImage) -> Iterable[TopicImage]:
    """By identity: an image shares what did not change with the one before it."""
    return (topic for topic_id, topic in new.topics.items() if old.topics.get(topic_id) is not topic)
