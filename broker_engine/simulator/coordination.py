"""Groups and the bank of one run: started, calmed down when the cluster heals, held against what must hold."""

from __future__ import annotations

import asyncio

from broker_engine.simulator.bank import Bank
from broker_engine.simulator.clients import SimClients
from broker_engine.simulator.coordination_plan import Coordination
from broker_engine.simulator.group_clients import SimGroup
from broker_engine.simulator.group_history import GroupHistory, Violate
from broker_engine.simulator.history import Allowed, Kind, check
from broker_engine.simulator.lives import Place

_FIRST_GROUP_PLACE = 40
_FIRST_BANK_PLACE = 80


class Coordinated:
    def __init__(self, clients: SimClients, plan: Coordination, violate: Violate) -> None:
        self._clients = clients
        self._violate = violate
        self.offsets = GroupHistory(violate, lambda: clients.loop.now_s)
        self.groups = [
            SimGroup(clients, group, self.offsets, first_place=_FIRST_GROUP_PLACE + 10 * number)
            for number, group in enumerate(plan.groups)
        ]
        self.bank = None
        if plan.bank is not None:
            self.bank = Bank(clients, plan.bank, self.offsets, violate, first_place=_FIRST_BANK_PLACE)

    @property
    def is_there(self) -> bool:
        return bool(self.groups) or self.bank is not None

    def start(self) -> list[asyncio.Task[None]]:
        tasks = [task for group in self.groups for task in group.start()]
        return tasks if self.bank is None else [*tasks, *self.bank.start()]

    def on_healed(self) -> None:
        """Nothing happens to clients any more either, and no more transfers come."""
        for place in self._places():
            place.is_calm = True
        if self.bank is not None:
            self.bank.is_closing = True

    def _places(self) -> list[Place]:
        places = [place for group in self.groups for place in group.places]
        return places if self.bank is None else [*places, *self.bank.places]

    def is_settled(self) -> str | None:
        for part in (*self.groups, self.bank):
            missing = None if part is None else part.is_settled()
            if missing is not None:
                return missing
        return None

    async def read_all(self) -> None:
        """When all clients have ended and no transaction is open."""
        if self.bank is not None:
            await self.bank.read_all()

    def check(self) -> None:
        for place in self._places():
            for text in place.errors:
                self._violate("no unexpected error", text)
        self.offsets.check()
        if self.bank is not None:
            allowed = Allowed(kinds=frozenset({Kind.G0, Kind.G1C_WW}))
            for anomaly in check(self.bank.history, allowed).violations:
                self._violate(anomaly.kind.value, str(anomaly))
