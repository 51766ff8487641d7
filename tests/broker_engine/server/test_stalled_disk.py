"""A flush that takes over ten seconds: noticed, told, and others take over where there are others."""

from __future__ import annotations

import logging
from dataclasses import dataclass

import pytest

from broker_engine.errors import ErrorCode
from broker_engine.metadata.controller import fence_broker
from broker_engine.metadata.image import MetadataImage
from broker_engine.server.stalled_disk import (
    CHECK_INTERVAL_MS,
    STALLED_AFTER_MS,
    StalledDisk,
    can_be_spared,
    turn_waiters_away,
)
from tests.broker_engine.metadata.builders import CONFIG, after, cluster, with_topic
from tests.broker_engine.server.one_replica import OneReplica


@dataclass
class Disk:
    """Its flushes and the clock, by hand."""

    ms: int = 0
    begun_ms: int | None = None
    is_spare: bool = True

    def now_ms(self) -> int:
        return self.ms

    def monotonic_ms(self) -> int:
        return self.ms

    def oldest_begun_ms(self) -> int | None:
        return self.begun_ms


def look_for(watch: StalledDisk, disk: Disk, duration_ms: int) -> None:
    for _ in range(duration_ms // CHECK_INTERVAL_MS):
        disk.ms += CHECK_INTERVAL_MS
        watch.look()


def watched(disk: Disk) -> StalledDisk:
    return StalledDisk(disk, disk, lambda: disk.is_spare)


def stalled(disk: Disk) -> StalledDisk:
    watch = watched(disk)
    disk.begun_ms = disk.ms
    look_for(watch, disk, STALLED_AFTER_MS + CHECK_INTERVAL_MS)
    assert watch.is_stalled
    return watch


def test_ten_seconds_are_a_slow_disk_and_more_is_one_that_stands_still(caplog: pytest.LogCaptureFixture) -> None:
    disk = Disk(begun_ms=0)
    watch = watched(disk)
    look_for(watch, disk, STALLED_AFTER_MS)
    assert (watch.is_stalled, watch.wants_drain) == (False, False)
    look_for(watch, disk, CHECK_INTERVAL_MS)
    assert (watch.is_stalled, watch.wants_drain) == (True, False), "telemetry tells of it first"
    look_for(watch, disk, 60_000)
    assert (watch.is_stalled, watch.wants_drain) == (True, True)
    (told,) = [record.getMessage() for record in caplog.records if record.levelno == logging.ERROR]
    assert "a flush has not ended after 11000 ms; others take over; look at the disk" in told


def test_it_is_well_again_when_flushes_end(caplog: pytest.LogCaptureFixture) -> None:
    disk = Disk()
    watch = stalled(disk)
    disk.begun_ms = None
    look_for(watch, disk, 2 * CHECK_INTERVAL_MS)
    assert watch.is_stalled
    look_for(watch, disk, CHECK_INTERVAL_MS)
    assert (watch.is_stalled, watch.wants_drain) == (False, False)
    assert "the disk answers again, 14000 ms after" in caplog.text


def test_a_disk_whose_every_flush_stalls_is_not_well_in_between() -> None:
    disk = Disk()
    watch = stalled(disk)
    for _ in range(5):
        disk.begun_ms = disk.ms
        look_for(watch, disk, STALLED_AFTER_MS + 2 * CHECK_INTERVAL_MS)
        assert watch.wants_drain


def test_it_does_not_leave_what_only_it_can_lead(caplog: pytest.LogCaptureFixture) -> None:
    disk = Disk(is_spare=False)
    watch = stalled(disk)
    assert not watch.wants_drain
    assert "it goes on, for there are partitions that only it can lead" in caplog.text
    disk.is_spare = True
    look_for(watch, disk, CHECK_INTERVAL_MS)
    assert watch.wants_drain


def test_a_process_that_stood_still_itself_does_not_blame_the_disk() -> None:
    disk = Disk(begun_ms=0)
    watch = watched(disk)
    disk.ms = 60_000
    watch.look()
    assert not watch.is_stalled


def fenced(image: MetadataImage, broker_id: int) -> MetadataImage:
    return after(image, fence_broker(image, broker_id, image.brokers[broker_id].epoch, config=CONFIG).records)


def test_a_broker_is_spared_where_somebody_else_is_in_sync() -> None:
    image = with_topic(cluster(3), [1, 2, 3])
    assert can_be_spared(image, 1)
    assert can_be_spared(fenced(image, 2), 1)
    assert not can_be_spared(fenced(fenced(image, 2), 3), 1)


def test_whoever_has_the_only_copy_is_not_spared() -> None:
    image = with_topic(cluster(3), [1], [2])
    assert not can_be_spared(image, 1)
    assert can_be_spared(image, 3)


def test_one_that_is_fenced_already_stays_so() -> None:
    assert can_be_spared(fenced(with_topic(cluster(3), [1, 2, 3]), 1), 1)


def test_whoever_waits_for_an_acknowledgement_looks_elsewhere() -> None:
    replica = OneReplica()
    answers: list[ErrorCode] = []
    replica.local.when_acked(replica.send(7, b"unflushed", is_plain=True) + 1, answers.append)
    assert answers == []
    turn_waiters_away([replica.local])
    assert answers == [ErrorCode.NOT_LEADER_OR_FOLLOWER]
