"""All partitions of this broker: opened, changed and retired as the metadata image says.

`open_missing` runs before an image is shown, so that a topic that a client can see can also be written;
`retire_removed` runs after. Logs are opened and deleted in threads; the rest happens on the loop.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import TypeVar
from uuid import UUID

from broker_engine.clock import Clock, Randomness
from broker_engine.config import BrokerConfig, TopicConfig
from broker_engine.errors import BrokerError, ErrorCode
from broker_engine.log.files import Files
from broker_engine.log.partition_log import PartitionLog
from broker_engine.metadata.image import MetadataImage, PartitionImage, TopicImage
from broker_engine.names import deleted_directory, directory, stray_directory
from broker_engine.partition.core import PartitionCore
from broker_engine.server.checkpoints import TopicPartition
from broker_engine.server.local_partition import LocalPartition, log_config, partition_settings

log = logging.getLogger(__name__)

OPEN_THREAD_COUNT = 4
OPEN_CHUNK_SIZE = 64
"""Logs that a thread opens or closes in one go: a hop between threads costs as much as opening a log."""
SHARED_SYNC_MIN = 16

PartitionKey = tuple[UUID, int]
T = TypeVar("T")
R = TypeVar("R")


@dataclass(slots=True)
class SavedOffsets:
    """What the checkpoints of the last run say; each partition takes its own when it is opened."""

    recovery_points: dict[TopicPartition, int] = field(default_factory=dict)
    log_starts: dict[TopicPartition, int] = field(default_factory=dict)

    def take(self, key: TopicPartition) -> tuple[int | None, int]:
        """(recovery point, log start), once: a topic that gets the name again is another one."""
        return self.recovery_points.pop(key, None), self.log_starts.pop(key, 0)


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
        self._by_key: dict[PartitionKey, LocalPartition] = {}
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
        wanted = []
        for topic in _changed_topics(old, new):
            config = self._resolve(topic)
            for index, state in topic.partitions.items():
                local = self._by_key.get((topic.id, index))
                if local is not None:
                    self._update(local, config)
                elif self._node_id in state.replicas:
                    wanted.append(_Wanted(topic, index, state, config))
        opened = await in_threads(self._open_several, wanted)
        await asyncio.to_thread(self._sync_parents, opened)
        for local in opened:
            self._by_key[local.topic_id, local.index] = local
            self._note_changed(local)

    async def retire_removed(self, old: MetadataImage, new: MetadataImage) -> None:
        """Close and delete the logs of topics that are gone. Their directories have other names when this returns."""
        has_removed = False
        for topic_id, topic in old.topics.items():
            if topic_id in new.topics:
                continue
            for index in topic.partitions:
                local = self._by_key.pop((topic_id, index), None)
                if local is not None:
                    has_removed = True
                    self.changed.pop(local, None)
                    local.retire(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
                    await asyncio.to_thread(self._delete, local)
        if has_removed and self.after_removal is not None:
            await self.after_removal()

    async def close_all(self) -> None:
        """For a clean stop, after everything was flushed."""
        await in_threads(_close_several, list(self._by_key.values()))

    def _note_changed(self, local: LocalPartition) -> None:
        self.changed[local] = None

    def _resolve(self, topic: TopicImage) -> TopicConfig:
        return TopicConfig.resolve(topic.configs, self._config, replication_factor=topic.replication_factor)

    def _update(self, local: LocalPartition, config: TopicConfig) -> None:
        local.configure(config, partition_settings(config, self._config.producer_id_expiration_ms))

    def _open_several(self, wanted: Sequence[_Wanted]) -> list[LocalPartition]:
        opened = []
        for each in wanted:
            try:
                opened.append(self._open(each))
            except BrokerError as error:
                # One bad log must not keep the others from serving: it answers as a partition without a leader here.
                log.error("cannot open %s-%d: %s", each.topic.name, each.index, error)
        return opened

    def _sync_parents(self, opened: Sequence[LocalPartition]) -> None:
        """Once for all of them, or every log would sync the data directory with its first flush."""
        parents: dict[str, list[PartitionLog]] = {}
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
        opened = self._open_log(wanted)
        core = PartitionCore(
            leader_epoch=wanted.state.leader_epoch,
            replicas=wanted.state.replicas,
            isr=wanted.state.isr,
            log_start_offset=opened.log_start_offset,
            log_end_offset=opened.log_end_offset,
            durable_end_offset=opened.durable_end_offset,
            settings=partition_settings(wanted.config, self._config.producer_id_expiration_ms),
        )
        core.restore(opened.producer_snapshots(), opened.iter_batches, self._clock.now_ms())
        opened.pack_producers = core.pack_producers
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
        )

    def _open_log(self, wanted: _Wanted) -> PartitionLog:
        name, index = wanted.topic.name, wanted.index
        try:
            return self._open_directory(wanted)
        except BrokerError as error:
            if error.code is not ErrorCode.INCONSISTENT_TOPIC_ID:
                raise
        # A topic of this name was deleted while we were away: its records are not this topic's.
        aside = stray_directory(name, index, self._randomness.uuid().hex)
        log.warning("%s-%d has another topic's directory: kept as %s", name, index, aside)
        self._files.rename(directory(name, index), aside)
        return self._open_directory(wanted)

    def _open_directory(self, wanted: _Wanted) -> PartitionLog:
        key = (wanted.topic.name, wanted.index)
        recovery_point, log_start_offset = self._saved.take(key)
        return PartitionLog.open(
            self._files,
            directory(*key),
            log_config(wanted.config),
            self._clock,
            topic_id=wanted.topic.id,
            recovery_point=recovery_point,
            log_start_offset=log_start_offset,
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


async def in_threads(work: Callable[[Sequence[T]], list[R]], items: Sequence[T]) -> list[R]:
    """All results, in the order of their items; a few threads, in chunks that are worth the way."""
    gate = asyncio.Semaphore(OPEN_THREAD_COUNT)

    async def run(chunk: Sequence[T]) -> list[R]:
        async with gate:
            return await asyncio.to_thread(work, chunk)

    chunks = [items[start : start + OPEN_CHUNK_SIZE] for start in range(0, len(items), OPEN_CHUNK_SIZE)]
    return [result for results in await asyncio.gather(*map(run, chunks)) for result in results]


def _changed_topics(old: MetadataImage, new: MetadataImage) -> Iterable[TopicImage]:
    """By identity: an image shares what did not change with the one before it."""
    return (topic for topic_id, topic in new.topics.items() if old.topics.get(topic_id) is not topic)
