"""The partitions of one internal topic that this broker leads, each as a shard in memory: what coordinators stand on.

A shard is loaded from its log when this broker begins to lead the partition, and dropped when it stops. Records are
written with acks=all and replayed when they are acknowledged, in the order of the log. Left out: what a shard holds,
and who is answered what; that is the coordinator's.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Generic, NamedTuple, Protocol, TypeVar

from broker_engine.errors import BrokerError, ErrorCode
from broker_engine.groups.placement import group_partition
from broker_engine.log.results import LogRead, storage_errors
from broker_engine.names import Name
from broker_engine.partition.core import ACKS_ALL
from broker_engine.records.batch import decode_records, iter_batches, parse_header
from broker_engine.records.builder import NewRecord, build_batch
from broker_engine.records.header import BatchHeader
from broker_engine.server.local_partition import LocalPartition
from broker_engine.server.supervisor import Supervisor

if TYPE_CHECKING:
    from broker_engine.metadata.image import MetadataImage, TopicImage
    from broker_engine.server.broker import Broker

log = logging.getLogger(__name__)

WRITE_TIMEOUT_S = 5.0
"""Kafka's offsets.commit.timeout.ms."""
_LOAD_AGAIN_S, _LOAD_AGAIN_S_MAX = 0.1, 1.0
_PRODUCE_VERSION = 11
_READ_BYTES = 1 << 20
_BATCH_BYTES_MAX = 64 << 20
_ELSEWHERE = frozenset(
    {ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.KAFKA_STORAGE_ERROR}
)

S = TypeVar("S")
OnSettled = Callable[[ErrorCode], None]
Pair = tuple[bytes, bytes | None]


class StoredBatch(NamedTuple):
    """One batch of the log, as a shard is loaded with it. A control batch comes whole, without pairs."""

    header: BatchHeader
    pairs: Sequence[Pair]
    data: bytes


@dataclass(slots=True, eq=False)
class Loaded(Generic[S]):
    """One partition that this broker leads in one leader epoch."""

    index: int
    local: LocalPartition
    leader_epoch: int
    shard: S
    is_ready: bool = False
    timers: dict[str, asyncio.TimerHandle] = field(default_factory=dict)
    """Cancelled when the shard is dropped."""


class ShardOwner(Protocol[S]):
    """What a coordinator says of its shards."""

    def new_shard(self) -> S: ...

    def replay_stored(self, shard: S, batch: StoredBatch) -> None:
        """While a shard is loaded: one batch of its log, in order."""
        ...

    def replay_written(self, shard: S, records: Sequence[Pair]) -> None:
        """What was written here is acknowledged."""
        ...

    def on_loaded(self, loaded: Loaded[S], record_count: int) -> None: ...

    def on_dropped(self, loaded: Loaded[S]) -> None:
        """Somebody else may lead it by now: whoever waits is told to look elsewhere."""
        ...


class Shards(Generic[S]):
    def __init__(
        self,
        broker: Broker,
        topic: Name,
        owner: ShardOwner[S],
        tasks: Supervisor,
        *,
        too_large: ErrorCode,
        is_committed_first: bool = False,
    ) -> None:
        """`is_committed_first`: a shard is ready when all that it was loaded with is committed. Else it shows what a
        successor without those records would not know.
        """
        self._broker = broker
        self._topic = topic
        self._owner = owner
        self._tasks = tasks
        self._too_large = too_large
        self._is_committed_first = is_committed_first
        self._loaded: dict[int, Loaded[S]] = {}
        self._is_running = False

    # --- where a key lives

    def partition_of(self, key: str) -> int | None:
        topic = self._broker.image.topic(self._topic)
        return None if topic is None else group_partition(key, topic.partition_count)

    def node_of(self, key: str) -> int | None:
        """The broker that leads its partition; None while there is none."""
        topic, index = self._broker.image.topic(self._topic), self.partition_of(key)
        if topic is None or index is None or topic.partitions[index].leader < 0:
            return None
        return topic.partitions[index].leader

    def ensure_topic(self) -> None:
        """Made with the first question for a coordinator, in the background."""
        if self._broker.image.topic(self._topic) is None:
            self._broker.first_use.create([self._topic])

    def find(self, key: str) -> Loaded[S]:
        """BrokerError 15, 16 or 14: the client asks again, maybe elsewhere."""
        index = self.partition_of(key)
        if index is None:
            raise BrokerError(ErrorCode.COORDINATOR_NOT_AVAILABLE)
        loaded = self._loaded.get(index)
        if loaded is None or not loaded.local.is_leader or self._broker.is_self_fenced:
            raise BrokerError(ErrorCode.NOT_COORDINATOR)
        if not loaded.is_ready:
            raise BrokerError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
        return loaded

    def at(self, index: int) -> Loaded[S] | None:
        """The shard of a partition; None where it is not led here, or not loaded yet."""
        loaded = self._loaded.get(index)
        return loaded if loaded is not None and loaded.is_ready else None

    def all(self) -> Iterator[Loaded[S]]:
        """By partition. BrokerError 14 at the first one that is not loaded yet: the list would be short."""
        for index in sorted(self._loaded):
            loaded = self._loaded[index]
            if not loaded.is_ready:
                raise BrokerError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
            yield loaded

    def ready(self) -> list[Loaded[S]]:
        return [self._loaded[index] for index in sorted(self._loaded) if self._loaded[index].is_ready]

    def is_current(self, loaded: Loaded[S]) -> bool:
        return self._loaded.get(loaded.index) is loaded

    # --- which ones are led here

    def start(self) -> None:
        """The broker serves: partitions that it leads already are loaded."""
        self._is_running = True
        self.look_again()

    def look_again(self) -> None:
        """A partition that is led here was opened, and no image said so."""
        if self._is_running:
            self._take_what_is_led(self._broker.image.topic(self._topic))

    def stop(self) -> None:
        self._is_running = False
        for index in list(self._loaded):
            self._drop(index)

    def follow(self, old: MetadataImage, new: MetadataImage) -> None:
        """A new image is shown, and replicas have their roles by it: load what we lead now, drop what we do not."""
        topic = new.topic(self._topic)
        if self._is_running and topic is not old.topic(self._topic):
            self._take_what_is_led(topic)

    def _take_what_is_led(self, topic: TopicImage | None) -> None:
        led = {} if topic is None else dict(self._led(topic))
        for index, loaded in list(self._loaded.items()):
            # By the partition too: where the topic was deleted and made again, the epoch may be the same.
            if index not in led or loaded.local is not led[index] or loaded.leader_epoch != led[index].leader_epoch:
                self._drop(index)
        for index, local in led.items():
            if index not in self._loaded:
                self._begin(index, local, local.leader_epoch)

    def _led(self, topic: TopicImage) -> Iterator[tuple[int, LocalPartition]]:
        for index in topic.partitions:
            local = self._broker.partitions.find(topic.id, index)
            if local is not None and local.is_leader:
                yield index, local

    def _begin(self, index: int, local: LocalPartition, epoch: int) -> None:
        loaded = self._loaded[index] = Loaded(index, local, epoch, self._owner.new_shard())
        self._tasks.spawn(self._load(loaded), f"load {self._topic}-{index}")

    async def _load(self, loaded: Loaded[S]) -> None:
        """Tried for as long as this broker leads: nobody else could, and what is damaged may be mended meanwhile."""
        pause_s = _LOAD_AGAIN_S
        while self.is_current(loaded):
            try:
                count = await self._read_all(loaded)
                if self._is_committed_first:
                    await _committed(loaded.local, loaded.local.log.log_end_offset)
            except BrokerError as error:
                log.warning("%s-%d cannot be loaded yet: %s", self._topic, loaded.index, error)
                loaded.shard = self._owner.new_shard()
                await asyncio.sleep(pause_s)
                pause_s = min(2 * pause_s, _LOAD_AGAIN_S_MAX)
                continue
            if self.is_current(loaded):
                loaded.is_ready = True
                self._owner.on_loaded(loaded, count)
            return

    async def _read_all(self, loaded: Loaded[S]) -> int:
        """Everything in the log, also what is not committed yet: this leader's log is what will be. The count."""
        local = loaded.local
        offset, end_offset, count = local.log_start_offset, local.log.log_end_offset, 0
        while offset < end_offset:
            read = local.read_for_replica(offset, bytes_max=_READ_BYTES, at_least_one=True)
            batches, next_offset = await asyncio.to_thread(_decode, read, offset)
            if next_offset <= offset:
                raise BrokerError(ErrorCode.KAFKA_STORAGE_ERROR, f"cannot be read at {offset}")
            for batch in batches:
                self._owner.replay_stored(loaded.shard, batch)
                count += len(batch.pairs)
            offset = next_offset
        return count

    def _drop(self, index: int) -> None:
        loaded = self._loaded.pop(index)
        for timer in loaded.timers.values():
            timer.cancel()
        self._owner.on_dropped(loaded)

    # --- writing

    def write(
        self,
        loaded: Loaded[S],
        records: Sequence[Pair],
        *,
        is_replayed: bool = True,
        on_settled: OnSettled = lambda code: None,
    ) -> asyncio.Future[ErrorCode]:
        """In the log when this returns; acknowledged, and replayed, when the future says so. `on_settled` is told so in
        the order of the log, maybe at once.
        """
        done: asyncio.Future[ErrorCode] = asyncio.get_running_loop().create_future()

        def settle(code: ErrorCode) -> None:
            # Here and not where the future is awaited: acks come in the order of the log, tasks in any.
            if code is ErrorCode.NONE and is_replayed:
                self._owner.replay_written(loaded.shard, records)
            code = self._as_coordinator(code)
            on_settled(code)
            if not done.done():
                done.set_result(code)

        now_ms = self._broker.clock.now_ms()
        batch = build_batch([NewRecord(now_ms, *pair) for pair in records])
        try:
            appended = loaded.local.append(memoryview(batch), produce_version=_PRODUCE_VERSION, acks=ACKS_ALL)
        except BrokerError as error:
            settle(error.code)
        else:
            loaded.local.when_acked(appended.end_offset, settle)
        return done

    async def written(self, loaded: Loaded[S], records: Sequence[Pair]) -> ErrorCode:
        """Seen by others when it is acknowledged, not before."""
        return await acked(self.write(loaded, records)) if records else ErrorCode.NONE

    def _as_coordinator(self, code: ErrorCode) -> ErrorCode:
        """A partition's refusal in the words of a coordinator."""
        if code is ErrorCode.NONE:
            return code
        if code is ErrorCode.MESSAGE_TOO_LARGE:
            return self._too_large
        return ErrorCode.NOT_COORDINATOR if code in _ELSEWHERE else ErrorCode.COORDINATOR_NOT_AVAILABLE


async def acked(write: asyncio.Future[ErrorCode]) -> ErrorCode:
    """COORDINATOR_NOT_AVAILABLE where it takes too long: what was written may still become so."""
    try:
        async with asyncio.timeout(WRITE_TIMEOUT_S):
            return await write
    except TimeoutError:
        return ErrorCode.COORDINATOR_NOT_AVAILABLE


async def _committed(local: LocalPartition, end_offset: int) -> None:
    done: asyncio.Future[ErrorCode] = asyncio.get_running_loop().create_future()
    local.when_acked(end_offset, lambda code: None if done.done() else done.set_result(code))
    code = await done
    if code is not ErrorCode.NONE:
        raise BrokerError(code)


def _decode(read: LogRead, offset: int) -> tuple[list[StoredBatch], int]:
    """In a thread: the batches of a piece of the log, and where it ends."""
    try:
        with storage_errors():
            data = b"".join(file_range.read() for file_range in read.ranges)
    finally:
        read.release()
    batches = []
    for batch in iter_batches(data):
        header = parse_header(batch)
        offset = header.next_offset
        batches.append(_stored(header, batch))
    return batches, offset


def _stored(header: BatchHeader, batch: memoryview) -> StoredBatch:
    if header.is_control:
        return StoredBatch(header, (), bytes(batch))
    records = decode_records(batch, max_bytes=_BATCH_BYTES_MAX)
    return StoredBatch(header, [(record.key, record.value) for record in records if record.key is not None], b"")
