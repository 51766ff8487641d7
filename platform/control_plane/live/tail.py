"""Reads every partition of `__telemetry` for as long as it runs, and starts over when the engine was away.

A broker that is down takes its own partition along and no other: the rest is read on, and the client finds the broker
again when it is back.
"""

from __future__ import annotations

import asyncio
import logging
import random
import time
from collections.abc import Callable, Sequence

from broker_engine.client import Client, Consumer, KafkaError, Record, Timestamp, TopicPartition
from control_plane.live.snapshot import BadTelemetry, Snapshot

log = logging.getLogger(__name__)

TOPIC = "__telemetry"
LOOK_BACK_MS = 60_000  # twice the interval within which every row is written again
POLL_MS = 500
POLL_RECORDS_MAX = 5000
LOOK_FOR_BROKERS_EVERY_S = 3.0
SILENT_AFTER_S = 15.0
FIRST_DELAY_S = 0.5
LONGEST_DELAY_S = 10.0


class TelemetryTail:
    """`run` never ends by itself. Used on one event loop; `is_connected` may be read from any thread."""

    def __init__(self, snapshot: Snapshot, make_client: Callable[[], Client]) -> None:
        self._snapshot = snapshot
        self._make_client = make_client
        self._heard_s: float | None = None

    @property
    def is_connected(self) -> bool:
        """Each broker tells something every second, so silence means that we have lost them."""
        heard_s = self._heard_s
        return heard_s is not None and time.monotonic() - heard_s < SILENT_AFTER_S

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
            # Several web processes lose the same broker at the same moment: they must not all come back at once.
            await asyncio.sleep(delay_s * random.uniform(0.5, 1.0))  # noqa: S311 - jitter

    async def _read_until_it_breaks(self) -> None:
        async with self._make_client() as client, Consumer(client, max_wait_ms=POLL_MS) as consumer:
            await self._assign(client, consumer)
            while True:
                until_s = time.monotonic() + LOOK_FOR_BROKERS_EVERY_S
                while time.monotonic() < until_s:
                    self._fold(await consumer.poll(POLL_MS, POLL_RECORDS_MAX))
                await self._look_for_brokers(client, consumer)

    async def _look_for_brokers(self, client: Client, consumer: Consumer) -> None:
        client.mark_stale(TOPIC)
        try:
            await self._assign(client, consumer)
        except KafkaError as error:
            if not error.retriable:
                raise
            log.info("could not look for new brokers this time: %s", error)

    async def _assign(self, client: Client, consumer: Consumer) -> None:
        """A new broker brings a new partition; the others are read on from where they are."""
        wanted = [TopicPartition(TOPIC, partition) for partition in sorted((await client.topic(TOPIC)).partitions)]
        if set(wanted) == set(consumer.assignment):
            return
        since = Timestamp(int(time.time() * 1000) - LOOK_BACK_MS)
        known = consumer.positions
        consumer.assign({target: known.get(target, since) for target in wanted})

    def _fold(self, records: Sequence[Record]) -> None:
        if records:
            self._heard_s = time.monotonic()
        for record in records:
            try:
                self._snapshot.apply(record.key, record.value)
            except BadTelemetry as error:
                log.warning("skipped a telemetry record at offset %d: %s", record.offset, error)
        self._snapshot.sample_groups(int(time.time() * 1000))
