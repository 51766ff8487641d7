"""Finds leaders for partitions whose in-sync replicas all crashed, or whose topic lets anybody lead when nobody in sync
lives: asks the replicas how far their logs go, then the longest leads (metadata/recovery.py, metadata/unclean.py). Runs
on the controller; looks only when the metadata changed, or while something waits.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING
from uuid import UUID

from broker_engine.client.errors import ConnectionFailed
from broker_engine.errors import BrokerError, ErrorCode
from broker_engine.handlers.replica_ends import ends_on
from broker_engine.metadata.controller import LogEnd, LogEnds, find_leaders, waiting_for_leader
from broker_engine.metadata.image import MetadataImage
from broker_engine.metadata.log_ends import PartitionKey
from broker_engine.metadata.recovery import Recovered
from broker_engine.metadata.sweep import Place
from broker_engine.wire.messages.internal_replica_ends import (
    ReplicaEndsRequest,
    ReplicaEndsResponse,
    ReplicaEndsTopic,
)

if TYPE_CHECKING:
    from broker_engine.server.broker import Broker

log = logging.getLogger(__name__)

LANE = "recovery"
_TICK_S = 0.1
_RETRY_S = 1.0
"""Until those are asked again who did not answer, while nothing else changes."""
_TIMEOUT_MS = 1_000
"""Who has not answered by then has no say: it may be dead, and nobody has noticed yet."""


class LeaderRecovery:
    def __init__(self, broker: Broker) -> None:
        self._broker = broker

    async def run(self) -> None:
        seen: MetadataImage | None = None
        is_waiting, idle_s = False, 0.0
        while True:
            image = self._broker.image
            if image is not seen or (is_waiting and idle_s >= _RETRY_S):
                seen, idle_s = image, 0.0
                places = waiting_for_leader(image, self._broker.config)
                is_waiting = bool(places)
                if places:
                    await self._find(image, places)
            await asyncio.sleep(_TICK_S)
            idle_s += _TICK_S

    async def log_ends(self, image: MetadataImage, places: Iterable[Place]) -> LogEnds:
        """As their live replicas say; who does not answer is left out."""
        asked = _by_broker(image, places)
        answers = await asyncio.gather(*(self._ask(broker_id, asked[broker_id]) for broker_id in sorted(asked)))
        ends: dict[PartitionKey, dict[int, LogEnd]] = {}
        for broker_id, answer in zip(sorted(asked), answers, strict=True):
            _add(ends, broker_id, answer)
        return ends

    async def _find(self, image: MetadataImage, places: Sequence[Place]) -> None:
        ends = await self.log_ends(image, places)
        asked = [(topic.id, index) for topic, index, _partition in places]
        config = self._broker.config
        try:
            found = await self._broker.metadata.commit(lambda image: find_leaders(image, asked, ends, config=config))
        except BrokerError as error:
            log.info("no leader was found where nobody in sync is left: %s", error)
            return
        for one in found:
            log.warning("%s-%d: %s", one.name, one.partition, _told(one))

    async def _ask(self, broker_id: int, topics: dict[UUID, list[int]]) -> ReplicaEndsResponse:
        request = ReplicaEndsRequest(
            topics=[ReplicaEndsTopic(topic_id=topic_id, partitions=indexes) for topic_id, indexes in topics.items()]
        )
        if broker_id == self._broker.node_id:
            return ends_on(self._broker, request)
        try:
            return await self._broker.peers.ask(
                broker_id, request, ReplicaEndsResponse, lane=LANE, timeout_ms=_TIMEOUT_MS
            )
        except ConnectionFailed:
            return ReplicaEndsResponse(error_code=ErrorCode.BROKER_NOT_AVAILABLE)


def _told(found: Recovered) -> str:
    end = "and did not say how far its log goes"
    if found.log_end is not None:
        end = f"with a log to {found.log_end.end_offset}"
    if found.is_unclean:
        return f"nobody in sync lives, broker {found.leader} leads, {end}: acknowledged records may be lost"
    return f"everybody in sync crashed, broker {found.leader} leads, {end}, the longest"


def _by_broker(image: MetadataImage, places: Iterable[Place]) -> dict[int, dict[UUID, list[int]]]:
    """Whom to ask for what: those that live."""
    asked: dict[int, dict[UUID, list[int]]] = {}
    for topic, index, partition in places:
        for member in partition.replicas:
            broker = image.brokers.get(member)
            if broker is not None and broker.is_active:
                asked.setdefault(member, {}).setdefault(topic.id, []).append(index)
    return asked


def _add(ends: dict[PartitionKey, dict[int, LogEnd]], broker_id: int, answer: ReplicaEndsResponse) -> None:
    if answer.error_code != ErrorCode.NONE:
        return
    for topic in answer.topics:
        for row in topic.partitions:
            end = LogEnd(row.last_epoch, row.end_offset, answer.broker_epoch)
            ends.setdefault((topic.topic_id, row.partition_index), {})[broker_id] = end
