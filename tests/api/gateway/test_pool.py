"""The pool of clients: one per caller, bounded, never closed under somebody's feet."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any, cast

import pytest

from api.gateway.pool import IDLE_CLOSE_S, ClientPool, PoolFull
from broker_engine.client import Client


@dataclass
class StandInClient:
    """As much of a client as the pool touches."""

    identity: tuple[str, str]
    can_start: asyncio.Event
    failures: list[Exception] = field(default_factory=list)
    is_closed: bool = False

    async def start(self) -> None:
        await self.can_start.wait()
        if self.failures:
            raise self.failures.pop()

    async def close(self) -> None:
        self.is_closed = True


class Factory:
    def __init__(self) -> None:
        self.made: list[StandInClient] = []
        self.failures: list[Exception] = []
        self.can_start = asyncio.Event()
        self.can_start.set()

    def __call__(self, tenant: str, principal: str) -> Client:
        self.made.append(StandInClient((tenant, principal), self.can_start, self.failures))
        return cast(Client, self.made[-1])


@pytest.fixture
def factory() -> Factory:
    return Factory()


@pytest.fixture
async def pool(factory: Factory) -> AsyncIterator[ClientPool]:
    pool = ClientPool(factory, clients_max=2)
    await pool.start()
    yield pool
    await pool.close()


async def use(pool: ClientPool, tenant: str, principal: str = "key") -> Any:
    async with pool.lease(tenant, principal) as own:
        return own.client


async def until(condition: Any) -> None:
    async with asyncio.timeout(5):
        while not condition():  # noqa: ASYNC110 - a turn of the loop at a time
            await asyncio.sleep(0)


async def test_a_caller_always_gets_its_own_client(pool: ClientPool, factory: Factory) -> None:
    first, second, again = await use(pool, "a"), await use(pool, "b"), await use(pool, "a")
    assert first is again
    assert [client.identity for client in factory.made] == [("a", "key"), ("b", "key")]
    assert second.identity == ("b", "key")


async def test_the_longest_idle_client_makes_room(pool: ClientPool, factory: Factory) -> None:
    for tenant in ("a", "b", "a", "c"):
        await use(pool, tenant)
    await until(lambda: factory.made[1].is_closed)
    assert not factory.made[0].is_closed


async def test_a_client_in_use_is_never_evicted(pool: ClientPool, factory: Factory) -> None:
    async with pool.lease("a", "key"), pool.lease("b", "key"):
        with pytest.raises(PoolFull):
            await use(pool, "c")
        assert not any(client.is_closed for client in factory.made)
        pool.sweep(time.monotonic() + 2 * IDLE_CLOSE_S)
        assert await use(pool, "a") is factory.made[0]


async def test_idle_clients_are_closed(pool: ClientPool, factory: Factory) -> None:
    await use(pool, "a")
    pool.sweep(time.monotonic())
    assert await use(pool, "a") is factory.made[0]
    pool.sweep(time.monotonic() + 2 * IDLE_CLOSE_S)
    await until(lambda: factory.made[0].is_closed)


async def test_a_failed_start_is_tried_anew_by_the_next_request(pool: ClientPool, factory: Factory) -> None:
    factory.failures.append(ConnectionError("no broker"))
    with pytest.raises(ConnectionError):
        await use(pool, "a")
    assert await use(pool, "a") is factory.made[1]
    assert factory.made[0].is_closed


async def test_a_caller_who_goes_away_does_not_spoil_the_start_for_others(pool: ClientPool, factory: Factory) -> None:
    factory.can_start.clear()
    impatient, patient = asyncio.create_task(use(pool, "a")), asyncio.create_task(use(pool, "a"))
    await until(lambda: factory.made)
    impatient.cancel()
    factory.can_start.set()
    assert await patient is factory.made[0]
    assert len(factory.made) == 1


async def test_closing_the_pool_closes_all(factory: Factory) -> None:
    pool = ClientPool(factory)
    await use(pool, "a")
    await use(pool, "b")
    await pool.close()
    assert all(client.is_closed for client in factory.made)
