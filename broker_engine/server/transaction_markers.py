"""Brings transaction markers to every partition of a transaction that is decided, wherever it is led.

One request at a time per broker, with all that waits for it: a broker answers one connection in order, so that a marker
which is sent twice never comes behind the producer's next transaction. What fails is tried again, with back-off, for
ever, at whoever leads by then. Done with it are only: a written marker, a topic that is gone, an epoch that the
partition has passed. A coordinator that was deposed is told so by a partition (52) and leaves the rest to the next one.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from broker_engine.client.backoff import backoff_ms
from broker_engine.client.errors import ConnectionFailed
from broker_engine.errors import ErrorCode
from broker_engine.metadata.image import MetadataImage
from broker_engine.names import ROOT, from_wire
from broker_engine.server.markers import Marker, TopicPartition
from broker_engine.server.supervisor import Supervisor
from broker_engine.wire.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)

if TYPE_CHECKING:
    from broker_engine.server.broker import Broker

log = logging.getLogger(__name__)

_LANE = "markers"
_TIMEOUT_MS = 40_000
"""Above the time that a broker waits for its replicas: its answer comes before we give it up."""
_PARTITIONS_MAX = 2_000
"""Per request: what is more goes with the next."""
_BACKOFF_MS, _BACKOFF_MS_MAX = 20, 1_000
_FAILURES_COUNTED_MAX = 7
"""By then the wait is at its longest."""

Codes = dict[TopicPartition, ErrorCode]
WriteLocal = Callable[["Broker", Sequence[Marker]], Awaitable[list[Codes]]]


@dataclass(slots=True, eq=False)
class _Job:
    """One transaction's markers."""

    marker: Marker
    owner: object
    on_done: Callable[[], None]
    left: dict[TopicPartition, None] = field(default_factory=dict)
    is_cancelled: bool = False


@dataclass(slots=True, eq=False)
class _Item:
    """One of them."""

    job: _Job
    place: TopicPartition
    failure_count: int = 0


class MarkerSender:
    def __init__(self, broker: Broker, tasks: Supervisor, write_local: WriteLocal) -> None:
        self._broker = broker
        self._tasks = tasks
        self._write_local = write_local
        self._jobs: dict[_Job, None] = {}
        self._queues: dict[int, deque[_Item]] = {}
        """By broker, while somebody works on it."""
        self._parked: dict[int, list[_Item]] = {}
        """Nobody leads the partition, or whoever did refused it. By the count of failures: those that wait equally long
        are sent together, and what others get done shortens nobody's wait.
        """
        self._timers: dict[int, asyncio.TimerHandle] = {}

    def send(self, marker: Marker, owner: object, on_done: Callable[[], None]) -> None:
        """`on_done` is called once every partition has it, maybe at once; never after `forget(owner)`."""
        job = _Job(marker, owner, on_done, dict.fromkeys(marker.partitions))
        self._jobs[job] = None
        if not job.left:
            self._finish(job)
        for place in marker.partitions:
            self._send(_Item(job, place))

    def forget(self, owner: object) -> None:
        """Its coordinator is somebody else now. What is under way may still arrive."""
        for job in [each for each in self._jobs if each.owner is owner]:
            self._cancel(job)
        for items in self._parked.values():
            items[:] = [item for item in items if not item.job.is_cancelled]

    def stop(self) -> None:
        for job in list(self._jobs):
            self._cancel(job)
        for timer in self._timers.values():
            timer.cancel()

    def follow(self, old: MetadataImage, new: MetadataImage) -> None:
        """Leaders may have changed: whatever waits for that is tried at once.

        A node that lost its power never closes a connection: its answer is given up with its life in the image.
        """
        if old.brokers is not new.brokers:
            for node_id in [each for each in self._queues if has_left(old, new, each)]:
                self._broker.peers.hang_up(node_id, lane=_LANE)
        if old.topics is not new.topics:
            for failure_count in list(self._parked):
                self._send_parked(failure_count)

    # --- where to

    def _send(self, item: _Item) -> None:
        if item.job.is_cancelled:
            return
        name, index = item.place
        topic = self._broker.image.topic(from_wire(name, ROOT))
        partition = None if topic is None else topic.partitions.get(index)
        if partition is None:
            self._settle(item)  # deleted: nobody will ever read what was written there
        elif partition.leader < 0:
            self._park(item)
        else:
            self._enqueue(partition.leader, item)

    def _enqueue(self, node_id: int, item: _Item) -> None:
        queue = self._queues.get(node_id)
        if queue is None:
            queue = self._queues[node_id] = deque()
            self._tasks.spawn(self._work(node_id, queue), f"markers to node {node_id}")
        queue.append(item)

    async def _work(self, node_id: int, queue: deque[_Item]) -> None:
        try:
            while queue:
                items = [queue.popleft() for _ in range(min(len(queue), _PARTITIONS_MAX))]
                await self._write_some(node_id, [item for item in items if not item.job.is_cancelled])
        except Exception:  # of ours: nothing of what is left was sent. Who is cancelled stops, and sends no more.
            del self._queues[node_id]
            for item in queue:
                self._send(item)
            raise
        del self._queues[node_id]  # no await since the queue was seen to be empty

    async def _write_some(self, node_id: int, items: Sequence[_Item]) -> None:
        jobs: dict[_Job, dict[TopicPartition, _Item]] = {}
        for item in items:
            jobs.setdefault(item.job, {})[item.place] = item
        markers = [job.marker._replace(partitions=tuple(places)) for job, places in jobs.items()]
        if not markers:
            return
        try:
            results = await self._ask(node_id, markers)
        except Exception:  # a bug: it must not leave a transaction open for ever
            log.exception("markers for node %d", node_id)
            results = [dict.fromkeys(marker.partitions, ErrorCode.UNKNOWN_SERVER_ERROR) for marker in markers]
        for places, codes in zip(jobs.values(), results, strict=True):
            for place, code in codes.items():
                self._on_code(places[place], code, node_id)

    async def _ask(self, node_id: int, markers: Sequence[Marker]) -> list[Codes]:
        if node_id == self._broker.node_id:
            return await self._write_local(self._broker, markers)
        request = WriteTxnMarkersRequest(markers=[_on_wire(marker) for marker in markers])
        try:
            response = await self._broker.peers.ask(
                node_id, request, WriteTxnMarkersResponse, lane=_LANE, timeout_ms=_TIMEOUT_MS
            )
        except ConnectionFailed as error:
            log.info("markers for node %d: %s", node_id, error.message)
            return [dict.fromkeys(marker.partitions, ErrorCode.NETWORK_EXCEPTION) for marker in markers]
        return _codes(markers, response)

    # --- what became of it

    def _on_code(self, item: _Item, code: ErrorCode, node_id: int) -> None:
        job, place = item.job, item.place
        if job.is_cancelled:
            return
        if code is ErrorCode.NONE:
            self._settle(item)
        elif code is ErrorCode.INVALID_PRODUCER_EPOCH:
            log.warning("%s-%d has ended this transaction by a later epoch: %s", *place, job.marker)
            self._settle(item)
        elif code is ErrorCode.TRANSACTION_COORDINATOR_FENCED:
            log.warning("%s-%d knows a later coordinator than us: %s", *place, job.marker)
            self._cancel(job)
        else:
            log.debug("marker for %s-%d is refused by node %d: %s", *place, node_id, code.name)
            self._park(item)

    def _settle(self, item: _Item) -> None:
        item.job.left.pop(item.place, None)
        if not item.job.left:
            self._finish(item.job)

    def _finish(self, job: _Job) -> None:
        if self._jobs.pop(job, False) is not None:
            return
        try:
            job.on_done()
        except Exception:  # a bug: the markers of other transactions are not to wait for it
            log.exception("after the last marker of %s", job.marker)

    def _cancel(self, job: _Job) -> None:
        job.is_cancelled = True
        self._jobs.pop(job, None)

    # --- again

    def _park(self, item: _Item) -> None:
        count = item.failure_count = min(item.failure_count + 1, _FAILURES_COUNTED_MAX)
        self._parked.setdefault(count, []).append(item)
        if count not in self._timers:
            wait_ms = backoff_ms(
                count, base_ms=_BACKOFF_MS, ceiling_ms=_BACKOFF_MS_MAX, random_unit=self._broker.randomness.unit
            )
            self._timers[count] = asyncio.get_running_loop().call_later(wait_ms / 1000, self._send_parked, count)

    def _send_parked(self, failure_count: int) -> None:
        timer = self._timers.pop(failure_count, None)
        if timer is not None:
            timer.cancel()
        for item in self._parked.pop(failure_count, ()):
            self._send(item)


def has_left(old: MetadataImage, new: MetadataImage, node_id: int) -> bool:
    """Fenced, removed or begun anew: whatever it was asked before, it will not answer."""
    before, now = old.brokers.get(node_id), new.brokers.get(node_id)
    if before is None or now is None:
        return before is not now
    return before.epoch != now.epoch or (now.is_fenced and not before.is_fenced)


def _on_wire(marker: Marker) -> WritableTxnMarker:
    topics: dict[str, list[int]] = {}
    for topic, index in marker.partitions:
        topics.setdefault(topic, []).append(index)
    return WritableTxnMarker(
        producer_id=marker.producer_id,
        producer_epoch=marker.producer_epoch,
        transaction_result=marker.is_commit,
        coordinator_epoch=marker.coordinator_epoch,
        transaction_version=marker.transaction_version,
        topics=[WritableTxnMarkerTopic(name=name, partition_indexes=indexes) for name, indexes in topics.items()],
    )


def _codes(markers: Sequence[Marker], response: WriteTxnMarkersResponse) -> list[Codes]:
    """In the order of the markers. What the answer leaves out is asked for again."""
    found = [
        {(topic.name, each.partition_index): each.error_code for topic in result.topics for each in topic.partitions}
        for result in response.markers
    ]
    found += [{}] * (len(markers) - len(found))
    return [
        {place: ErrorCode(codes.get(place, ErrorCode.UNKNOWN_SERVER_ERROR)) for place in marker.partitions}
        for marker, codes in zip(markers, found, strict=True)
    ]
