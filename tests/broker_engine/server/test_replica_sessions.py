"""A follower's long poll on the leader's side: news ends it, also news that came a moment before it began."""

from __future__ import annotations

import asyncio
from uuid import UUID

from broker_engine.server.replica_sessions import ReplicaSession
from broker_engine.wire.messages.fetch import FetchPartition

LONG_S = 600.0


async def test_news_ends_a_wait() -> None:
    session = ReplicaSession(1, broker_id=2, broker_epoch=3)
    target = session.target((UUID(int=1), 0), FetchPartition())
    waiting = asyncio.ensure_future(session.wait(LONG_S))
    await asyncio.sleep(0)
    target.on_news(is_urgent=True)
    async with asyncio.timeout(10):
        await waiting


async def test_news_between_the_look_and_the_wait_is_not_slept_through() -> None:
    """Found by simulation, seed 161: an append while the next request was about to wait cost its whole long poll."""
    session = ReplicaSession(1, broker_id=2, broker_epoch=3)
    target = session.target((UUID(int=1), 0), FetchPartition())
    target.on_news(is_urgent=True)
    async with asyncio.timeout(10):
        await session.wait(LONG_S)


async def test_what_is_not_urgent_waits_with_the_rest() -> None:
    session = ReplicaSession(1, broker_id=2, broker_epoch=3)
    target = session.target((UUID(int=1), 0), FetchPartition())
    target.on_news(is_urgent=False)
    waiting = asyncio.ensure_future(session.wait(LONG_S))
    await asyncio.sleep(0)
    assert not waiting.done()
    session.wake()
    await waiting
