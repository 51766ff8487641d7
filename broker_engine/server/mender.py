"""Copies that rotted on disk, made whole again: what cannot be read here is asked of the other replicas.

The scrubber, a recovery, or a follower that was sent bytes whose CRC does not agree finds the damage; readers get
KAFKA_STORAGE_ERROR for it from then on. Committed batches are the same on all replicas, so another one's are put in the
place of the hole, as a compaction puts a cleaned segment in place of its sources. Nothing is cut off, neither here nor
elsewhere, so the replica stays in sync; and a leader is mended by its followers as they are by it.
Holes above the high watermark wait until that has passed them. Where it does not, because a leader's records rotted
before others had them, those were promised to nobody: another one in sync leads, and they are cut off here.
Left out: holes of the only copy.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator, Sequence
from typing import Protocol, TypeVar

from broker_engine.client.errors import ConnectionFailed
from broker_engine.errors import BrokerError, ErrorCode
from broker_engine.log.damage import Hole
from broker_engine.log.mending import Mending
from broker_engine.metadata.image import MetadataImage
from broker_engine.partition.core import PartitionCore
from broker_engine.partition.follower_core import FollowerCore
from broker_engine.records.header import BatchHeader, parse_header
from broker_engine.records.replicated import check_replicated
from broker_engine.server.following import read_again
from broker_engine.server.local_partition import LocalPartition
from broker_engine.server.partitions import Partitions
from broker_engine.server.scrubber import Scrubber
from broker_engine.server.supervisor import Supervisor
from broker_engine.wire.messages.internal_replica_read import ReplicaReadRequest, ReplicaReadResponse
from broker_engine.wire.schema import Message

log = logging.getLogger(__name__)

LANE = "mending"
_AGAIN_S = 5.0
"""Until those are tried again that could not be mended."""
_HELD_UP_MS = 4_000
"""So long followers have to come past a hole, if they have what was there."""
_HANDED_OVER_MS_MAX = 5_000
_PAUSE_S = 0.02
_TIMEOUT_MS = 10_000
_CHUNK_BYTES = 1 << 20
_HOLE_BYTES_MAX = 64 << 20
"""A larger one is left to people: all of it is held in memory."""
_DOUBTS_MAX = 100

R = TypeVar("R", bound=Message)


class Asker(Protocol):
    async def ask(self, node_id: int, message: Message, answer: type[R], *, lane: str, timeout_ms: int) -> R: ...


class Mender:
    def __init__(
        self,
        node_id: int,
        partitions: Partitions,
        peers: Asker,
        scrubber: Scrubber,
        image: Callable[[], MetadataImage],
        *,
        tasks: Supervisor,
    ) -> None:
        self._node_id = node_id
        self._partitions = partitions
        self._peers = peers
        self._scrubber = scrubber
        self._image = image
        self._damaged: dict[LocalPartition, None] = {}
        self._doubts: dict[tuple[LocalPartition, int], None] = {}
        self._held_up_since_ms: dict[LocalPartition, int] = {}
        self._tasks = tasks
        self._wake = asyncio.Event()
        self._loop = asyncio.get_running_loop()
        self.mended_count = 0
        """Holes since the start."""

    # --- what is told

    @property
    def damaged_count(self) -> int:
        """Logs here of which something is rotten, and not mended yet."""
        return sum(bool(local.log.holes) for local in self._damaged)

    def look_for_damage(self) -> None:
        """Recovery may have found some, or knew of it. It guesses where damage ends, so that is looked at again."""
        for local in list(self._partitions.all()):
            for hole in local.log.holes:
                self.note_damaged(local)
                self.doubt(local, _base_of(local, hole))
            if local.core.producers.doubtful_from is not None:
                self.note_damaged(local)
                self.doubt(local, local.core.producers.doubtful_from)

    def note_damaged(self, local: LocalPartition) -> None:
        self._damaged[local] = None
        self._wake.set()

    def doubt(self, local: LocalPartition, offset: int) -> None:
        """What is stored from this offset on does not verify, says a follower, or a reader here was to pass over it.

        A cut says it from its thread.
        """
        if len(self._doubts) < _DOUBTS_MAX:
            self._doubts[local, offset] = None
            self._loop.call_soon_threadsafe(self._wake.set)

    def on_corrupt(self, leader_id: int, local: LocalPartition) -> None:
        """The leader sent bytes that do not verify: it should look at its disk."""
        request = ReplicaReadRequest(
            topic_id=local.topic_id,
            partition_index=local.index,
            start_offset=local.core.log_end_offset,
            is_doubted=True,
        )
        self._tasks.spawn(self._tell(leader_id, request), f"doubt node {leader_id}")

    async def _tell(self, leader_id: int, request: ReplicaReadRequest) -> None:
        try:
            await self._peers.ask(leader_id, request, ReplicaReadResponse, lane=LANE, timeout_ms=_TIMEOUT_MS)
        except ConnectionFailed as error:
            log.info("node %d was not told of its damage: %s", leader_id, error.message)

    # --- what is done

    async def run(self) -> None:
        self.look_for_damage()
        while True:
            await self._wait()
            await self._look_again()
            await self.mend_all()

    async def _wait(self) -> None:
        try:
            async with asyncio.timeout(_AGAIN_S if self._damaged or self._doubts else None):
                await self._wake.wait()
        except TimeoutError:
            return
        self._wake.clear()

    async def _look_again(self) -> None:
        doubts, self._doubts = self._doubts, {}
        for local, offset in doubts:
            if local.is_retired:
                continue
            if local.busy is not None:  # it is being cut, and that may be what met the damage
                self._doubts[local, offset] = None
                continue
            bases = local.log.segment_bases
            base_offset = max((base for base in bases if base <= offset), default=bases[0])
            if base_offset == bases[-1]:
                local.log.roll()  # only what is sealed can be verified and replaced
            await self._scrubber.verify(local, base_offset)

    async def mend_all(self) -> None:
        """What cannot be mended now stays noted."""
        for local in list(self._damaged):
            try:
                is_whole = local.is_retired or await self._mend(local)
            except BrokerError as error:
                log.warning("%s-%d cannot be mended yet: %s", local.name, local.index, error)
                continue
            if is_whole:
                self._damaged.pop(local, None)
                self._held_up_since_ms.pop(local, None)

    async def _mend(self, local: LocalPartition) -> bool:
        """True once there is no hole left, and nothing in the log of which this replica does not know."""
        if local.busy is not None:
            return False
        by_segment: dict[int, list[Hole]] = {}
        for hole in local.log.holes:
            by_segment.setdefault(_base_of(local, hole), []).append(hole)
        for base_offset, holes in by_segment.items():
            await self._mend_segment(local, base_offset, holes)
        self._hand_over_if_held_up(local)
        return not local.log.holes and await self._learn_all(local)

    async def _learn_all(self, local: LocalPartition) -> bool:
        """Where transactions began or ended in what was mended, a follower reads its log again. A leader cannot, while
        others write: one that knows all is to lead. Until then readers of committed records wait in front of it. True
        once nothing is left to learn.
        """
        if local.is_retired or local.busy is not None:
            return local.is_retired
        local.core.on_mended((), local.monotonic_ms(), is_whole=True)
        if not local.core.producers.is_partial:
            return True
        if local.leading is not None:
            await self._have_another_lead(local, local.leading)
        if local.following is not None and local.busy is None:
            await self._read_again(local, local.following)
        return not local.core.producers.is_partial

    async def _have_another_lead(self, local: LocalPartition, core: PartitionCore) -> None:
        """Returns when one does, or after a while: before the log is read again, the next election could be back."""
        effects = core.resign()
        if not effects:
            return
        text = "%s-%d: which transactions are open in what was mended is not known: another one in sync is to lead"
        log.warning(text, local.name, local.index)
        local.perform(effects)
        deadline_ms = local.monotonic_ms() + _HANDED_OVER_MS_MAX
        while local.leading is core and local.monotonic_ms() < deadline_ms:  # noqa: ASYNC110 - soon, and seldom
            await asyncio.sleep(_PAUSE_S)

    async def _read_again(self, local: LocalPartition, core: FollowerCore) -> None:
        try:
            await read_again(local, core)
        finally:
            if not local.is_retired:
                self._partitions.on_role(local)  # the fetcher has passed it over meanwhile

    def _hand_over_if_held_up(self, local: LocalPartition) -> None:
        """Where nobody else has what is rotten here, no follower gets past it, and nothing is committed any more."""
        core, now_ms = local.leading, local.monotonic_ms()
        if core is None or not any(hole.end_offset > core.high_watermark for hole in local.log.holes):
            self._held_up_since_ms.pop(local, None)
        elif now_ms - self._held_up_since_ms.setdefault(local, now_ms) >= _HELD_UP_MS and (effects := core.resign()):
            log.error(
                "%s-%d: records above %d rotted before others had them: another one in sync is to lead",
                local.name, local.index, core.high_watermark,
            )  # fmt: skip
            local.perform(effects)

    async def _mend_segment(self, local: LocalPartition, base_offset: int, holes: list[Hole]) -> None:
        """As a whole, or not now: what nobody has of one segment does not keep the others from being mended."""
        patches = {}
        for hole in holes:
            data = await self._bytes_for(local, hole)
            if data is None:
                return
            patches[hole] = data
        mending = local.log.mending_of(base_offset, patches) if local.busy is None else None
        if mending is not None and await self._put_in(local, mending):
            self.mended_count += len(patches)
            log.warning("%s-%d: the segment at %d is whole again", local.name, local.index, base_offset)

    async def _put_in(self, local: LocalPartition, mending: Mending) -> bool:
        try:
            await asyncio.to_thread(mending.clean)
            await local.settled()
            deleted = None if local.is_retired or mending.job.has_failed else local.log.swap_in(mending)
            if deleted is None:
                log.error("%s-%d was not mended: %s", local.name, local.index, mending.job.problem or mending.job.error)
                await asyncio.to_thread(mending.discard)
                if mending.job.problem:  # more of it has rotted since
                    await self._scrubber.verify(local, mending.base_offset)
                return False
            try:
                await asyncio.to_thread(mending.finish)
            finally:
                local.log.settle(mending)
            # Without an await since it settled: a cut could take away what producers are said to have sent.
            local.core.on_mended(mending.patched(), local.monotonic_ms(), is_whole=not local.log.holes)
            local.log.on_mended(mending.patched())
        finally:
            mending.release()
        for segment in deleted:
            await asyncio.to_thread(segment.remove)
        return True

    # --- what others have

    async def _bytes_for(self, local: LocalPartition, hole: Hole) -> bytes | None:
        if hole.end_offset > local.core.high_watermark or hole.end_position - hole.position > _HOLE_BYTES_MAX:
            return None
        for node_id in self._sources(local):
            try:
                return await self._fetch(node_id, local, hole)
            except (BrokerError, ConnectionFailed) as error:
                log.info("%s-%d is not mended by node %d: %s", local.name, local.index, node_id, error)
        return None

    def _sources(self, local: LocalPartition) -> Iterator[int]:
        """The leader first, then whoever is in sync, then the others: what they have of the same epoch is the same."""
        topic = self._image().topics.get(local.topic_id)
        state = topic.partitions.get(local.index) if topic is not None else None
        if state is not None:
            members = dict.fromkeys((state.leader, *state.isr, *state.replicas))
            yield from (member for member in members if member not in (self._node_id, -1))

    async def _fetch(self, node_id: int, local: LocalPartition, hole: Hole) -> bytes:
        pieces: list[bytes] = []
        headers: list[BatchHeader] = []
        offset = hole.start_offset
        while offset < hole.end_offset:
            records = await self._read(node_id, local, offset, hole.end_offset)
            data, found = self._checked(local, records, offset, hole)
            pieces.append(data)
            headers += found
            offset = found[-1].next_offset if found else hole.end_offset
        if any(local.log.epoch_of(header.base_offset) != header.partition_leader_epoch for header in headers):
            await self._check_history(node_id, local, hole, headers)
        return b"".join(pieces)

    async def _read(self, node_id: int, local: LocalPartition, start_offset: int, end_offset: int) -> bytes:
        request = ReplicaReadRequest(
            topic_id=local.topic_id,
            partition_index=local.index,
            start_offset=start_offset,
            end_offset=end_offset,
            max_bytes=_CHUNK_BYTES,
        )
        answer = await self._peers.ask(node_id, request, ReplicaReadResponse, lane=LANE, timeout_ms=_TIMEOUT_MS)
        if answer.error_code != ErrorCode.NONE:
            raise BrokerError(ErrorCode(answer.error_code))
        return answer.records

    def _checked(
        self, local: LocalPartition, records: bytes, offset: int, hole: Hole
    ) -> tuple[bytes, Sequence[BatchHeader]]:
        """Batches that verify, and are inside the hole; none where compaction may have left none."""
        found = check_replicated(memoryview(records), next_offset=offset, epoch_min=0, epoch_max=local.leader_epoch)
        if not found.headers:
            if not local.log.config.is_compacting:
                raise BrokerError(ErrorCode.OFFSET_OUT_OF_RANGE, "the other replica has nothing there")
            return b"", ()
        size_bytes = sum(header.size_bytes for header in found.headers)
        if found.headers[-1].next_offset > hole.end_offset:
            raise BrokerError(ErrorCode.CORRUPT_MESSAGE, "the other replica's batches end elsewhere")
        return records[found.start : found.start + size_bytes], found.headers

    async def _check_history(
        self, node_id: int, local: LocalPartition, hole: Hole, headers: Sequence[BatchHeader]
    ) -> None:
        """Theirs are not the epochs that this log has there: they are from another history, or our epochs were made
        anew at a start, from batches of which these could not be read. Who has the same batch in the same epoch behind
        the hole had the same leader then, and has the same before it.
        """
        behind = local.log.header_at(hole.end_offset)
        if behind is not None:
            theirs = parse_header(await self._read(node_id, local, behind.base_offset, behind.next_offset))
            epochs = [header.partition_leader_epoch for header in (*headers, behind)]
            epochs.insert(0, local.log.epoch_of(hole.start_offset - 1))
            if theirs == behind and epochs == sorted(epochs):
                return
        raise BrokerError(ErrorCode.FENCED_LEADER_EPOCH, "the other replica has another history")


def _base_of(local: LocalPartition, hole: Hole) -> int:
    return max(base for base in local.log.segment_bases if base <= hole.start_offset)
