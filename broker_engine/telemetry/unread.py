"""Looks up when the first record that a group has not read was written: the age of it is the lag in seconds.

The coordinator knows the committed offset, a replica has the record. Where a replica is here it is read here, in a
thread; else the partition's leader is asked. What was found stays: a record's time does not change. Only offsets that
have moved, and groups that had read everything, are asked about again, so many of them at a time.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING
from uuid import UUID

from broker_engine.client.errors import KafkaError
from broker_engine.groups.records import OffsetValue
from broker_engine.handlers.record_times import times_on
from broker_engine.ids import NO_TOPIC_ID
from broker_engine.metadata.image import TopicImage
from broker_engine.names import ROOT, from_wire
from broker_engine.telemetry.groups import GroupTeller, LoadedShard, Place
from broker_engine.telemetry.schema import UNREAD_UNKNOWN
from broker_engine.wire.messages.internal_record_times import (
    RecordTimesPlace,
    RecordTimesRequest,
    RecordTimesResponse,
)

if TYPE_CHECKING:
    from broker_engine.server.broker import Broker

log = logging.getLogger(__name__)

LANE = "record times"
TIMEOUT_MS = 3_000

Question = tuple[LoadedShard, Place, OffsetValue]


class UnreadTimes:
    def __init__(self, broker: Broker, teller: GroupTeller) -> None:
        self._broker = broker
        self._teller = teller

    async def run(self) -> None:
        while True:
            await asyncio.sleep(self._broker.config.telemetry_interval_ms / 1000)
            await self.look()

    async def look(self) -> None:
        by_node: dict[int, list[tuple[Question, RecordTimesPlace]]] = {}
        for question in self._teller.take_questions():
            found = self._where(question)
            if found is not None:
                node, place = found
                by_node.setdefault(node, []).append((question, place))
        for node in sorted(by_node):
            await self._ask(node, by_node[node])

    def _where(self, question: Question) -> tuple[int, RecordTimesPlace] | None:
        """On which broker to look. None: the topic is gone, or nobody leads the partition."""
        _, (_, text, index), value = question
        topic = self._broker.image.topic(from_wire(text, ROOT))
        if topic is None or index not in topic.partitions or not _is_of(value, topic):
            return None
        state = topic.partitions[index]
        node = self._broker.node_id if self._has(topic.id, index) else state.leader
        place = RecordTimesPlace(topic_id=topic.id, partition_index=index, offset=value.offset)
        return None if node < 0 else (node, place)

    def _has(self, topic_id: UUID, index: int) -> bool:
        local = self._broker.partitions.find(topic_id, index)
        return local is not None and not local.is_retired

    async def _ask(self, node: int, asked: list[tuple[Question, RecordTimesPlace]]) -> None:
        places = [place for _, place in asked]
        if node == self._broker.node_id:
            times = await times_on(self._broker, places)
        else:
            times = await self._ask_other(node, places)
        for ((loaded, place, value), _), unread_ms in zip(asked, times, strict=False):
            if unread_ms != UNREAD_UNKNOWN:
                self._teller.answer(loaded, place, value, unread_ms)

    async def _ask_other(self, node: int, places: list[RecordTimesPlace]) -> list[int]:
        request = RecordTimesRequest(places=places)
        try:
            answer = await self._broker.peers.ask(node, request, RecordTimesResponse, lane=LANE, timeout_ms=TIMEOUT_MS)
        except KafkaError as error:
            log.debug("broker %d does not say when records were written: %s", node, error.message)
            return []
        return list(answer.timestamps)


def _is_of(value: OffsetValue, topic: TopicImage) -> bool:
    """An offset belongs to a topic id: one of a topic that was deleted and made again says nothing of the new one."""
    return value.topic_id in (NO_TOPIC_ID, topic.id)
