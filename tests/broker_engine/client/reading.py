"""What several test modules of the client need."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from broker_engine.client import Client, Consumer, Record

MakeTopic = Callable[..., Awaitable[str]]


async def read(client: Client, topic: str, count: int, *, partitions: int = 1, timeout_s: float = 20) -> list[Record]:
    """All records of a topic, at least `count`; fails when they do not come."""
    records: list[Record] = []
    async with Consumer(client, max_wait_ms=100) as consumer, asyncio.timeout(timeout_s):
        consumer.assign({(topic, partition): "earliest" for partition in range(partitions)})
        while len(records) < count:
            records += await consumer.poll(1_000, 10_000)
        records += await consumer.poll(200, 10_000)
    return records
