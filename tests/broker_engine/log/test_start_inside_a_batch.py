"""A log may start inside its first batch. Kafka's epochs begin there, too, and not where the batch does."""

from __future__ import annotations

import pytest

from broker_engine.log.checkpoints import EPOCHS_FILE, EpochCache, EpochStart
from broker_engine.log.config import LogConfig
from tests.broker_engine.log.harness import DIRECTORY
from tests.broker_engine.server.one_replica import OneReplica

SMALL_SEGMENTS = LogConfig(segment_bytes=300)


@pytest.fixture
def replica() -> OneReplica:
    """Batches of five records, of which the first two were deleted by Kafka."""
    replica = OneReplica(SMALL_SEGMENTS)
    for number in range(6):
        replica.send(7, *[b"%d" % number] * 5, is_plain=True)
    replica.flush()
    replica.high_watermark = replica.local.high_watermark
    replica.local.log.close()
    epochs = EpochCache([EpochStart(replica.core.leader_epoch, 2)])
    replica.files.write_atomic(f"{DIRECTORY}/{EPOCHS_FILE}", epochs.format(), is_durable=True)
    return replica


@pytest.mark.parametrize("recovery_point", [30, 0])
def test_it_is_read_from_its_start(replica: OneReplica, recovery_point: int) -> None:
    replica._reopen(recovery_point)
    read = replica.local.read(2, bytes_max=10_000, is_committed_only=False, at_least_one=True)
    read.release()
    assert read.first_offset == 0


def test_its_first_segment_is_sound(replica: OneReplica) -> None:
    replica._reopen(30)
    job = replica.local.log.verify_job(0)
    assert job is not None
    job.run()
    replica.local.log.on_verified(job)
    assert replica.local.log.holes == []
