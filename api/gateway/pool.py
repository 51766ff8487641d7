"""Clients on behalf of callers: one per (tenant, principal), signed in as that caller, shared by its requests.

The engine decides rights and quotas by the connection's identity, so the gateway never sends one caller's bytes over
another's connection. The pool is bounded: the client that has been idle the longest makes room, and one that nobody has
used for a while is closed. Used on one event loop.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from api.gateway.produce_body import Acks
from broker_engine.client import Client, Producer

log = logging.getLogger(__name__)

CLIENTS_MAX = 256
IDLE_CLOSE_S = 300.0
SWEEP_EVERY_S = 15.0
# REST callers wait on a connection of ours: better a prompt 503 than a held one.
PRODUCER_MAX_BLOCK_MS = 5_000
PRODUCER_DELIVERY_TIMEOUT_MS = 20_000
PRODUCER_CLOSE_MS = 3_000
PRODUCER_BUFFER_BYTES = 32 << 20

Identity = tuple[str, str]
"""Tenant and principal."""


class PoolFull(Exception):  # noqa: N818 - reads as the sentence it is
    """Every client of the pool is in use."""


@dataclass(slots=True)
class CallerClient:
    client: Client
    _producers: dict[Acks, Producer] = field(default_factory=dict)

    def producer(self, acks: Acks) -> Producer:
        """One per acks setting, shared by all requests of the caller: their records travel in common batches."""
        if acks not in self._producers:
            self._producers[acks] = Producer(
                self.client,
                acks=acks,
                max_block_ms=PRODUCER_MAX_BLOCK_MS,
                buffer_memory_bytes=PRODUCER_BUFFER_BYTES,
                delivery_timeout_ms=PRODUCER_DELIVERY_TIMEOUT_MS,
                auto_create_topics=False,
            )
        return self._producers[acks]

    async def close(self) -> None:
        for producer in self._producers.values():
            await producer.close(timeout_ms=PRODUCER_CLOSE_MS)
        await self.client.close()


@dataclass(slots=True)
class _Seat:
    starting: asyncio.Task[CallerClient]
    lease_count: int = 0
    last_used_s: float = 0.0


class ClientPool:
    def __init__(self, make_client: Callable[[str, str], Client], *, clients_max: int = CLIENTS_MAX) -> None:
        self._make_client = make_client
        self._clients_max = clients_max
        self._seats: OrderedDict[Identity, _Seat] = OrderedDict()  # the least recently used first
        self._sweeper: asyncio.Task[None] | None = None
        self._closing: set[asyncio.Task[None]] = set()

    async def start(self) -> None:
        self._sweeper = asyncio.get_running_loop().create_task(self._sweep_for_ever(), name="gateway pool sweeper")

    async def close(self) -> None:
        if self._sweeper is not None:
            self._sweeper.cancel()
        for identity in list(self._seats):
            self._evict(identity)
        if self._closing:
            await asyncio.wait(self._closing)

    @asynccontextmanager
    async def lease(self, tenant: str, principal: str) -> AsyncIterator[CallerClient]:
        """The caller's client, which stays open for the length of the block."""
        seat = self._seat((tenant, principal))
        seat.lease_count += 1
        try:
            # Shielded: the first caller may go away while others already wait for the same start.
            yield await asyncio.shield(seat.starting)
        finally:
            seat.lease_count -= 1
            seat.last_used_s = time.monotonic()

    def _seat(self, identity: Identity) -> _Seat:
        seat = self._seats.get(identity)
        if seat is None:
            self._make_room()
            seat = self._seats[identity] = _Seat(asyncio.create_task(self._start(identity), name="gateway client"))
        self._seats.move_to_end(identity)
        return seat

    async def _start(self, identity: Identity) -> CallerClient:
        client = self._make_client(*identity)
        try:
            await client.start()
        except BaseException:
            # The next request must try anew instead of finding this failure.
            self._seats.pop(identity, None)
            await client.close()
            raise
        return CallerClient(client)

    def _make_room(self) -> None:
        if len(self._seats) < self._clients_max:
            return
        idle = next((identity for identity, seat in self._seats.items() if seat.lease_count == 0), None)
        if idle is None:
            raise PoolFull(f"all {self._clients_max} clients of the gateway are in use")
        self._evict(idle)

    def _evict(self, identity: Identity) -> None:
        task = asyncio.create_task(self._close_seat(self._seats.pop(identity)), name="gateway client close")
        self._closing.add(task)
        task.add_done_callback(self._closing.discard)

    async def _close_seat(self, seat: _Seat) -> None:
        try:
            await (await seat.starting).close()
        except Exception:
            log.exception("a client of the gateway did not close cleanly")

    async def _sweep_for_ever(self) -> None:
        while True:
            await asyncio.sleep(SWEEP_EVERY_S)
            self.sweep(time.monotonic())

    def sweep(self, now_s: float) -> None:
        """Close what has been idle for too long."""
        for identity, seat in list(self._seats.items()):
            if seat.lease_count == 0 and now_s - seat.last_used_s > IDLE_CLOSE_S:
                self._evict(identity)
