"""The tail against a real broker: it starts before the broker does, follows it, and outlives its restart."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from broker_engine.client import Admin, Client, ClientConfig, NewTopic, PlainCredentials, Producer
from control_plane.live.snapshot import Snapshot
from control_plane.live.tail import TelemetryTail
from tests.broker_engine.broker_process import BrokerProcess


def client_of(broker: BrokerProcess) -> Client:
    sasl = PlainCredentials("control-plane", broker.cluster_secret)
    return Client(ClientConfig(bootstrap=(broker.address("internal"),), sasl=sasl))


@pytest.fixture
async def broker(tmp_path: Path) -> AsyncIterator[BrokerProcess]:
    broker = BrokerProcess(tmp_path / "broker")
    with broker:
        yield broker


async def wait_for_high_watermark(snapshot: Snapshot, topic: str, wanted: int) -> None:
    """Telemetry is told once a second."""
    async with asyncio.timeout(30):
        while sum(row.high_watermark for row in snapshot.topic("", topic)) != wanted:  # noqa: ASYNC110 - it polls a fold
            await asyncio.sleep(0.05)


async def produce(broker: BrokerProcess, topic: str, count: int) -> None:
    async with client_of(broker) as client, Producer(client) as producer:
        for _ in range(count):
            await producer.send(topic, b"x", partition=0)


async def test_the_snapshot_follows_the_broker_through_a_restart(broker: BrokerProcess) -> None:
    async with client_of(broker) as client:
        await Admin(client).create_topics([NewTopic("orders", 2)])
    snapshot = Snapshot()
    tail = TelemetryTail(snapshot, lambda: client_of(broker))
    running = asyncio.create_task(tail.run())
    try:
        await produce(broker, "orders", 5)
        await wait_for_high_watermark(snapshot, "orders", 5)
        assert tail.is_connected
        assert [row.partition for row in snapshot.topic("", "orders")] == [0, 1]
        assert [state.broker for state in snapshot.brokers()] == [1]

        await asyncio.to_thread(broker.stop)
        await asyncio.to_thread(broker.start)
        await produce(broker, "orders", 2)
        await wait_for_high_watermark(snapshot, "orders", 7)
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
