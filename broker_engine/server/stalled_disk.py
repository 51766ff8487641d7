"""A disk that stands still: a flush that takes over ten seconds, without an error.

Acknowledgements of `fsync` topics wait for it, here and wherever this broker counts as in sync. So it asks to be
drained, by asking to be fenced: others lead, nobody waits for it any more, and it comes back by itself when the flush
has ended. It does not ask where a partition would be left without a leader: what is on a slow disk can still be read.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable
from typing import Protocol

from broker_engine.clock import Clock
from broker_engine.errors import ErrorCode
from broker_engine.metadata.image import MetadataImage
from broker_engine.metadata.parts import PartitionImage
from broker_engine.metadata.sweep import partitions_where
from broker_engine.metadata.telemetry_topic import TELEMETRY_TOPIC
from broker_engine.server.local_partition import LocalPartition

log = logging.getLogger(__name__)

STALLED_AFTER_MS = 10_000
CHECK_INTERVAL_MS = 1_000
_CALM_MS = 1_000
_CALM_LOOKS_MIN = 3
"""A disk for which each flush is a stall of its own is not well in between."""
_ADVICE = "look at the disk (dmesg, iostat -x 1); if it does not recover, stop this broker and give it another one"


class Flushes(Protocol):
    def oldest_begun_ms(self) -> int | None:
        """Since when the oldest flush in flight runs, by the monotonic clock."""
        ...


class StalledDisk:
    def __init__(self, clock: Clock, flushes: Flushes, can_be_spared: Callable[[], bool]) -> None:
        self.is_stalled = False
        self.wants_drain = False
        """Only while it stalls: others should lead, and not wait for this broker."""
        self._clock = clock
        self._flushes = flushes
        self._can_be_spared = can_be_spared
        self._looked_ms = clock.monotonic_ms()
        self._stalled_since_ms = 0
        self._calm_looks = 0

    async def run(self) -> None:
        while True:
            await asyncio.sleep(CHECK_INTERVAL_MS / 1000)
            self.look()

    def look(self) -> None:
        since_ms, self._looked_ms = self._looked_ms, self._clock.monotonic_ms()
        if self._looked_ms - since_ms > 2 * CHECK_INTERVAL_MS:
            return  # this process stood still itself: the flush may have ended, and nobody was there to be told
        begun_ms = self._flushes.oldest_begun_ms()
        elapsed_ms = 0 if begun_ms is None else self._looked_ms - begun_ms
        self._calm_looks = self._calm_looks + 1 if elapsed_ms < _CALM_MS else 0
        if not self.is_stalled and elapsed_ms > STALLED_AFTER_MS:
            self._begin(elapsed_ms)
        elif self.is_stalled and self._calm_looks >= _CALM_LOOKS_MIN:
            self._end()
        elif self.is_stalled:
            self.wants_drain = self._can_be_spared()

    def _begin(self, elapsed_ms: int) -> None:
        """It asks to be drained with the next look: by then telemetry has told of it, and after that it cannot."""
        self.is_stalled, self._stalled_since_ms = True, self._looked_ms - elapsed_ms
        is_spare = self._can_be_spared()
        what = "others take over" if is_spare else "it goes on, for there are partitions that only it can lead"
        log.error("the disk stands still: a flush has not ended after %d ms; %s; %s", elapsed_ms, what, _ADVICE)

    def _end(self) -> None:
        self.is_stalled = self.wants_drain = False
        elapsed_ms = self._looked_ms - self._stalled_since_ms
        log.warning("the disk answers again, %d ms after the flush that stood still began", elapsed_ms)


def can_be_spared(image: MetadataImage, broker_id: int) -> bool:
    """Whether somebody else is in sync wherever this broker has a replica. Its own telemetry nobody else could have."""

    active = {broker.id for broker in image.brokers.values() if broker.is_active} - {broker_id}

    def needs_it(partition: PartitionImage) -> bool:
        return broker_id in partition.replicas and active.isdisjoint(partition.isr)

    return all(topic.name == TELEMETRY_TOPIC for topic, _, _ in partitions_where(image, needs_it))


def turn_waiters_away(partitions: Iterable[LocalPartition]) -> None:
    """Others lead by now. The image that says so may wait for the same disk, and whoever waits here need not."""
    for local in list(partitions):
        if local.is_leader:
            local.fail_waiters(ErrorCode.NOT_LEADER_OR_FOLLOWER)
