"""A member of a KIP-848 group: the coordinator assigns, the member takes and gives back as it is told (membership.py).

There is one request for everything. A heartbeat carries what changed, or all that the member is and has where an answer
may have been lost; the answer carries the partitions that it is to have. Only what changes hands is revoked and
assigned: the rest goes on. Left out: regular expressions, racks, topics that are made anew under their name.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Iterable
from typing import Any
from uuid import UUID

from broker_engine.client.client import Client
from broker_engine.client.errors import KafkaError
from broker_engine.client.membership import Membership, raise_for
from broker_engine.client.model import TopicPartition
from broker_engine.errors import ErrorCode
from broker_engine.wire.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    HeartbeatAssignment,
    HeartbeatTopicPartitions,
)

_JOINING_EPOCH = 0
_LEAVING_EPOCH = -1


class ConsumerMember(Membership):
    FENCED = frozenset({ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_MEMBER_EPOCH})
    EXPECTED = frozenset({ErrorCode.UNRELEASED_INSTANCE_ID})

    def __init__(self, client: Client, group_id: str, topics: Iterable[str], **options: Any) -> None:
        """`options` are those of Membership. How often it beats, and how long it may be silent, the group says."""
        super().__init__(client, group_id, topics, **options)
        self._names: dict[UUID, str] = {}
        self._interval_ms = 0

    async def _take_part(self) -> None:
        if self._assignment is None:
            await self._get_ready()
        is_whole = True
        while True:
            answer = await self._beat(is_whole=is_whole)
            self._failure_count = 0
            is_whole = await self._follow(answer)
            if not is_whole:
                await asyncio.sleep(self._interval_ms / 1000)

    async def _get_ready(self) -> None:
        for topic in self._topics:
            self._names[(await self._client.topic(topic)).topic_id] = topic
        self._become(_JOINING_EPOCH, self._identity.member_id or str(self._client.randomness.uuid()))

    async def _follow(self, answer: ConsumerGroupHeartbeatResponse) -> bool:
        """Did we take or give back something? Then the coordinator is to know at once."""
        self._become(answer.member_epoch, answer.member_id or self._identity.member_id)
        self._interval_ms = answer.heartbeat_interval_ms
        if self._assignment is None:
            self._assignment = ()
            self._changed.set()
        return answer.assignment is not None and await self._reconcile(self._targets(answer.assignment))

    def _targets(self, assignment: HeartbeatAssignment) -> tuple[TopicPartition, ...]:
        return tuple(
            TopicPartition(self._names[topic.topic_id], index)
            for topic in assignment.topic_partitions
            if topic.topic_id in self._names
            for index in topic.partitions
        )

    async def _reconcile(self, targets: tuple[TopicPartition, ...]) -> bool:
        owned = self.assignment
        kept = tuple(target for target in owned if target in targets)
        revoked = tuple(target for target in owned if target not in targets)
        added = tuple(target for target in targets if target not in owned)
        if revoked:
            await self._let_go(self._on_revoked, revoked, kept=kept)
        if added:
            await self._on_assigned(added)
            self._assignment = (*self.assignment, *added)
        return bool(revoked or added)

    # --- heartbeats

    async def _beat(self, *, is_whole: bool) -> ConsumerGroupHeartbeatResponse:
        request = ConsumerGroupHeartbeatRequest(
            group_id=self.group_id,
            member_id=self._identity.member_id,
            member_epoch=self._identity.generation,
            instance_id=self._identity.instance_id,
        )
        if is_whole:
            request.rebalance_timeout_ms = self._rebalance_timeout_ms
            request.subscribed_topic_names = list(self._topics)
            request.topic_partitions = self._owned()
        answer = await self._ask(request, ConsumerGroupHeartbeatResponse, self._client.config.request_timeout_ms)
        raise_for(answer.error_code, f"heartbeat in group {self.group_id!r}")
        return answer

    def _owned(self) -> list[HeartbeatTopicPartitions]:
        by_topic: defaultdict[str, list[int]] = defaultdict(list)
        for target in self.assignment:
            by_topic[target.topic].append(target.partition)
        ids = {name: topic_id for topic_id, name in self._names.items()}
        return [HeartbeatTopicPartitions(topic_id=ids[name], partitions=found) for name, found in by_topic.items()]

    async def _leave(self) -> None:
        self._become(_LEAVING_EPOCH, self._identity.member_id)
        try:
            await self._beat(is_whole=False)
        except KafkaError:
            return
