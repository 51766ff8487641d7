"""A group in a simulated cluster: members that join, commit ever higher offsets, leave, crash and are stopped.

What is committed are numbers, not positions: a group's offsets are looked at here, not its records.
"""

from __future__ import annotations

import asyncio
from random import Random

from broker_engine.client import Client, ConsumerMember, GroupMember, KafkaError, Membership, TopicPartition
from broker_engine.client.coordinator import Coordinator, CoordinatorKind
from broker_engine.client.group_offsets import fetch_offsets
from broker_engine.client.membership import OnPartitions
from broker_engine.simulator.clients import SimClients
from broker_engine.simulator.coordination_plan import GroupPlan
from broker_engine.simulator.group_history import GroupHistory
from broker_engine.simulator.lives import Life, Place
from broker_engine.simulator.sim_process import Process

_PAUSE_S = 0.35
_AUDIT_EVERY_S = 0.8
_LEFT_RATIO = 0.8


class SimGroup:
    def __init__(self, clients: SimClients, plan: GroupPlan, history: GroupHistory, *, first_place: int) -> None:
        self._clients = clients
        self._plan = plan
        self._history = history
        self._targets = [TopicPartition(plan.topic, index) for index in range(plan.partition_count)]
        self.places = [
            Place(clients, f"{plan.name}{number}", first_place + number, self._live, life_s=plan.life_s)
            for number in range(plan.member_count)
        ]
        self._members: dict[str, Membership] = {}

    def start(self) -> list[asyncio.Task[None]]:
        loop = self._clients.loop
        tasks = [loop.spawn(loop.world, place.run(), place.name) for place in self.places]
        name = f"{self._plan.name}-audit"
        return [*tasks, self._clients.run(name, lambda process, host: self._audit(name, process, host))]

    def is_settled(self) -> str | None:
        """All who are there are in one generation, and have all partitions between them."""
        members = [self._members.get(place.life.name) for place in self.places if place.life is not None]
        if any(member is None or not member.is_assigned for member in members):
            return f"not all members of {self._plan.name!r} have an assignment"
        present = [member for member in members if member is not None]
        generations = {member.identity.generation for member in present}
        assigned = sorted(target for member in present for target in member.assignment)
        if len(generations) != 1 or assigned != sorted(self._targets):
            return f"group {self._plan.name!r}: generations {sorted(generations)}, assigned {assigned}"
        return None

    # --- members

    async def _live(self, life: Life) -> None:
        client = await self._clients.connect(life.process, life.host)
        random = Random(f"{self._clients.loop.seed}/{life.name}/commits")  # noqa: S311 - a workload, nothing secret
        positions: dict[TopicPartition, int] = {}

        async def on_assigned(partitions: tuple[TopicPartition, ...]) -> None:
            self._note_assigned(member, partitions)
            positions.update(await self._read(life.name, member, partitions))

        async def on_revoked(partitions: tuple[TopicPartition, ...]) -> None:
            left = {target: positions[target] for target in partitions if target in positions}
            if left and random.random() < _LEFT_RATIO:
                await self._commit(life.name, member, left)
            await on_lost(partitions)

        async def on_lost(partitions: tuple[TopicPartition, ...]) -> None:
            for target in partitions:
                positions.pop(target, None)

        member = self._members[life.name] = self._new_member(client, on_assigned, on_revoked, on_lost)
        member.start()
        while not life.is_leaving:
            await asyncio.sleep(random.expovariate(1 / _PAUSE_S))
            if member.is_assigned and positions:  # also one that was stopped in its sleep, and has a successor
                target = random.choice(list(positions))
                positions[target] += 1
                await self._commit(life.name, member, {target: positions[target]})
        await member.close()
        await client.close()

    def _new_member(
        self, client: Client, on_assigned: OnPartitions, on_revoked: OnPartitions, on_lost: OnPartitions
    ) -> Membership:
        plan, rebalance_timeout_ms = self._plan, 2 * self._plan.session_timeout_ms
        if plan.is_assigned_by_broker:
            return ConsumerMember(
                client,
                plan.name,
                [plan.topic],
                rebalance_timeout_ms=rebalance_timeout_ms,
                on_assigned=on_assigned,
                on_revoked=on_revoked,
                on_lost=on_lost,
            )
        return GroupMember(
            client,
            plan.name,
            [plan.topic],
            session_timeout_ms=plan.session_timeout_ms,
            rebalance_timeout_ms=rebalance_timeout_ms,
            heartbeat_interval_ms=plan.heartbeat_interval_ms,
            on_assigned=on_assigned,
            on_revoked=on_revoked,
            on_lost=on_lost,
        )

    def _note_assigned(self, member: Membership, partitions: tuple[TopicPartition, ...]) -> None:
        if self._plan.is_assigned_by_broker:
            self._history.taken(member.identity, partitions)
        else:
            self._history.assigned(member.identity, partitions)

    async def _commit(self, name: str, member: Membership, offsets: dict[TopicPartition, int]) -> None:
        call = self._history.commit(name, member.identity, offsets)
        try:
            await member.commit(offsets)
        except KafkaError:
            return  # also a clear no may come after a try that was lost on the way, and was carried out
        self._history.committed(call)

    async def _read(
        self, name: str, member: Membership, partitions: tuple[TopicPartition, ...]
    ) -> dict[TopicPartition, int]:
        call = self._history.read(name, self._plan.name, partitions)
        found = await member.committed(partitions)
        self._history.found(call, found)
        return {target: found.get(target, 0) for target in partitions}

    # --- somebody who only looks

    async def _audit(self, name: str, process: Process, host: str) -> None:
        client = await self._clients.connect(process, host)
        coordinator = Coordinator(client, CoordinatorKind.GROUP, self._plan.name)
        while True:
            is_last = self._clients.is_stopping
            call = self._history.read(name, self._plan.name, self._targets)
            try:
                self._history.found(call, await fetch_offsets(coordinator, self._plan.name, self._targets))
            except KafkaError:
                await asyncio.sleep(0.2)
                continue
            if is_last:
                break
            await asyncio.sleep(_AUDIT_EVERY_S)
        await client.close()
