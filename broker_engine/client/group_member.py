"""A member of a classic group: joins, gets its partitions, sends heartbeats, commits offsets, leaves (membership.py).

Rebalances are eager: before it joins again a member gives back all that it has. Left out: assignors other than range,
regular expressions.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping

from broker_engine.client.client import Client
from broker_engine.client.coordinator import PASSING
from broker_engine.client.errors import KafkaError, known_code
from broker_engine.client.group_protocol import (
    PROTOCOL_TYPE,
    RANGE,
    JoinedMember,
    Subscription,
    assign_ranges,
    decode_assignment,
    decode_subscription,
    encode_assignment,
    encode_subscription,
)
from broker_engine.client.membership import Membership, OnPartitions, ignore, raise_for
from broker_engine.client.model import TopicPartition
from broker_engine.errors import ErrorCode
from broker_engine.wire.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from broker_engine.wire.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol, JoinGroupResponse
from broker_engine.wire.messages.leave_group import API as LEAVE_GROUP
from broker_engine.wire.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse, MemberIdentity
from broker_engine.wire.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment, SyncGroupResponse

_JOIN_GRACE_MS = 5_000
_FIRST_LEAVE_VERSION_WITH_SEVERAL = 3
_NO_GENERATION = -1


class GroupMember(Membership):
    FENCED = frozenset({ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.ILLEGAL_GENERATION})
    EXPECTED = frozenset({ErrorCode.REBALANCE_IN_PROGRESS, ErrorCode.MEMBER_ID_REQUIRED})

    def __init__(
        self,
        client: Client,
        group_id: str,
        topics: Iterable[str],
        *,
        session_timeout_ms: int = 45_000,
        rebalance_timeout_ms: int = 60_000,
        heartbeat_interval_ms: int = 3_000,
        instance_id: str | None = None,
        on_assigned: OnPartitions = ignore,
        on_revoked: OnPartitions = ignore,
        on_lost: OnPartitions | None = None,
    ) -> None:
        super().__init__(
            client,
            group_id,
            topics,
            rebalance_timeout_ms=rebalance_timeout_ms,
            instance_id=instance_id,
            on_assigned=on_assigned,
            on_revoked=on_revoked,
            on_lost=on_lost,
        )
        self._session_timeout_ms = session_timeout_ms
        self._heartbeat_interval_ms = heartbeat_interval_ms

    async def _take_part(self) -> None:
        await self._join()
        self._failure_count = 0
        await self._beat()
        await self._give_back(self._on_revoked)

    # --- join and sync

    async def _join(self) -> None:
        joined = await self._ask(self._join_request(), JoinGroupResponse, self._join_timeout_ms())
        if joined.error_code == ErrorCode.MEMBER_ID_REQUIRED:
            self._become(_NO_GENERATION, joined.member_id)
        raise_for(joined.error_code, f"join group {self.group_id!r}")
        self._become(joined.generation_id, joined.member_id)
        assignments = await self._assignments(joined)
        synced = await self._ask(self._sync_request(assignments), SyncGroupResponse, self._join_timeout_ms())
        raise_for(synced.error_code, f"sync group {self.group_id!r}")
        partitions = decode_assignment(bytes(synced.assignment))
        await self._on_assigned(partitions)
        self._assignment = partitions
        self._changed.set()

    def _join_timeout_ms(self) -> int:
        return max(self._rebalance_timeout_ms + _JOIN_GRACE_MS, self._client.config.request_timeout_ms)

    def _join_request(self) -> JoinGroupRequest:
        metadata = encode_subscription(Subscription(self._topics))
        return JoinGroupRequest(
            group_id=self.group_id,
            session_timeout_ms=self._session_timeout_ms,
            rebalance_timeout_ms=self._rebalance_timeout_ms,
            member_id=self._identity.member_id,
            group_instance_id=self._identity.instance_id,
            protocol_type=PROTOCOL_TYPE,
            protocols=[JoinGroupRequestProtocol(name=RANGE, metadata=metadata)],
        )

    async def _assignments(self, joined: JoinGroupResponse) -> dict[str, list[TopicPartition]]:
        """Made by the leader for all; everybody else sends none."""
        if joined.leader != joined.member_id or joined.skip_assignment:
            return {}
        members = [
            JoinedMember(each.member_id, each.group_instance_id, decode_subscription(bytes(each.metadata)).topics)
            for each in joined.members
        ]
        counts: dict[str, int] = {}
        for topic in dict.fromkeys(topic for member in members for topic in member.topics):
            counts[topic] = (await self._client.topic(topic)).partition_count
        return assign_ranges(members, counts)

    def _sync_request(self, assignments: Mapping[str, list[TopicPartition]]) -> SyncGroupRequest:
        return SyncGroupRequest(
            group_id=self.group_id,
            generation_id=self._identity.generation,
            member_id=self._identity.member_id,
            group_instance_id=self._identity.instance_id,
            protocol_type=PROTOCOL_TYPE,
            protocol_name=RANGE,
            assignments=[
                SyncGroupRequestAssignment(member_id=member_id, assignment=encode_assignment(partitions))
                for member_id, partitions in assignments.items()
            ],
        )

    # --- heartbeats

    async def _beat(self) -> None:
        """Returns when the group rebalances; raises where we are not in it any more."""
        alive_ms = self._client.clock.monotonic_ms()
        while True:
            await asyncio.sleep(self._heartbeat_interval_ms / 1000)
            code = await self._beat_once()
            if code == ErrorCode.REBALANCE_IN_PROGRESS:
                return
            if code == ErrorCode.NONE:
                alive_ms = self._client.clock.monotonic_ms()
            elif code not in PASSING:
                raise_for(code, f"heartbeat in group {self.group_id!r}")
            elif self._client.clock.monotonic_ms() - alive_ms >= self._session_timeout_ms:
                text = f"no coordinator of {self.group_id!r} was reached for {self._session_timeout_ms} ms"
                raise KafkaError(ErrorCode.ILLEGAL_GENERATION, text)

    async def _beat_once(self) -> ErrorCode:
        request = HeartbeatRequest(
            group_id=self.group_id,
            generation_id=self._identity.generation,
            member_id=self._identity.member_id,
            group_instance_id=self._identity.instance_id,
        )
        try:
            answer = await self._ask(request, HeartbeatResponse, self._session_timeout_ms)
        except KafkaError as error:
            code = error.code
        else:
            code = known_code(answer.error_code)
        self._coordinator.on_error(code)
        return code

    # --- leaving

    async def _leave(self) -> None:
        """Told once: if it does not arrive, the session's end does the same."""
        try:
            connection = await self._coordinator.connection()
            if connection.version_of(LEAVE_GROUP) >= _FIRST_LEAVE_VERSION_WITH_SEVERAL:
                request = LeaveGroupRequest(
                    group_id=self.group_id, members=[MemberIdentity(member_id=self._identity.member_id)]
                )
            else:
                request = LeaveGroupRequest(group_id=self.group_id, member_id=self._identity.member_id)
            await connection.ask(request, LeaveGroupResponse)
        except KafkaError:
            return
