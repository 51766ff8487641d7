"""Reads `__telemetry` for as long as it runs, and starts over when the engine was away."""

from __future__ import annotations

import asyncio
import logging
import random
import time
from collections.abc import Callable, Iterable

from broker_engine.client import Client, Consumer, KafkaError, Record, Timestamp
from control_plane.live.snapshot import BadTelemetry, Snapshot

log = logging.getLogger(__name__)

TOPIC = "__telemetry"
LOOK_BACK_MS = 60_000  # twice the interval within which every row is written again
OVERLAP_MS = 5_000
POLL_MS = 500
POLL_RECORDS_MAX = 5000
ASSIGNMENT_LASTS_S = 30.0  # a new broker brings a new partition
FIRST_DELAY_S = 0.5
LONGEST_DELAY_S = 10.0


class TelemetryTail:
    """`run` never ends by itself. Used on one event loop."""

    def __init__(self, snapshot: Snapshot, make_client: Callable[[], Client]) -> None:
        self._snapshot = snapshot
        self._make_client = make_client
        self.is_connected = False

    async def run(self) -> None:
        delay_s = FIRST_DELAY_S
        while True:
            started_s = time.monotonic()
            try:
                await self._read_until_it_breaks()
            except (KafkaError, OSError) as error:
                was_healthy = time.monotonic() - started_s > LONGEST_DELAY_S
                delay_s = FIRST_DELAY_S if was_healthy else min(LONGEST_DELAY_S, delay_s * 2)
                log.warning("no telemetry from the engine, next try in %.1f s: %s", delay_s, error)
            finally:
                self.is_connected = False
            # Several web processes lose the same broker at the same moment: they must not all come back at once.
            await asyncio.sleep(delay_s * random.uniform(0.5, 1.0))  # noqa: S311 - jitter

    async def _read_until_it_breaks(self) -> None:
        async with self._make_client() as client:
            since_ms = _now_ms() - LOOK_BACK_MS
            while True:
                await self._read_one_assignment(client, Timestamp(since_ms))
                since_ms = _now_ms() - OVERLAP_MS  # rows that are read twice fold into the same state

    async def _read_one_assignment(self, client: Client, since: Timestamp) -> None:
        topic = await client.topic(TOPIC)
        consumer = Consumer(client, max_wait_ms=POLL_MS)
        try:
            consumer.assign({(TOPIC, partition): since for partition in topic.partitions})
            until_s = time.monotonic() + ASSIGNMENT_LASTS_S
            while time.monotonic() < until_s:
                self._fold(await consumer.poll(POLL_MS, POLL_RECORDS_MAX))
                self.is_connected = True
        finally:
            await consumer.close()

    def _fold(self, records: Iterable[Record]) -> None:
        for record in records:
            try:
                self._snapshot.apply(record.key, record.value)
            except BadTelemetry as error:
                log.warning("skipped a telemetry record at offset %d: %s", record.offset, error)


def _now_ms() -> int:
    return int(time.time() * 1000)
