"""No CRC covers a batch's offset and epoch: of the batch, the next one and the epochs' checkpoint two are right."""

from __future__ import annotations

import pytest

from broker_engine.log.checkpoints import EPOCHS_FILE, EpochCache, EpochStart
from broker_engine.log.config import LogConfig
from broker_engine.log.files import MemoryFiles
from broker_engine.log.replica_log import ReplicaLog
from broker_engine.records.builder import NewRecord, build_batch
from tests.broker_engine.log.harness import DIRECTORY, LogHarness, numbered

BATCH_BYTES = len(build_batch([NewRecord(0, b"k", numbered(1)[0])]))
CONFIG = LogConfig(segment_bytes=5 * BATCH_BYTES, index_interval_bytes=100)
EPOCHS = [0, 0, 0, 1, 1, 3, 3, 3, 3, 3, 3, 4, 6, 6, 6, 6, 6, 7, 7, 7]
"""By offset. Some begin with a segment, some inside one, and one has a single batch."""
COUNT = len(EPOCHS)
FLIPS = [(byte, bit) for byte in (4, 7, 12, 15) for bit in (0, 1, 3)]
"""Of base offset and leader epoch."""


class RottenLog:
    def __init__(self) -> None:
        self.files = MemoryFiles()
        self.harness = LogHarness(self.files, CONFIG)
        for epoch, value in zip(EPOCHS, numbered(COUNT), strict=True):
            self.harness.append(value, epoch=epoch)
        self.harness.flush()
        self.bases = self.harness.log.segment_bases
        self.epochs = self.harness.log.epochs.entries

    def flip(self, offset: int, byte: int, bit: int) -> None:
        base = max(base for base in self.bases if base <= offset)
        data = self.files._files[f"{DIRECTORY}/{base:020d}.log"].data
        data[(offset - base) * BATCH_BYTES + byte] ^= 1 << bit

    def recover(self, recovery_point: int) -> ReplicaLog:
        for name in [name for name in self.files._files if name.endswith("index")]:
            self.files.unlink(name)  # or nobody would look into what is below the recovery point
        return self.harness.open(recovery_point=recovery_point)

    def note_epochs(self, *starts: tuple[int, int]) -> None:
        cache = EpochCache([EpochStart(*start) for start in starts])
        self.files.write_atomic(f"{DIRECTORY}/{EPOCHS_FILE}", cache.format(), is_durable=True)


def agrees_with_next(offset: int, byte: int, bit: int) -> bool:
    """Rotten into the epoch that begins behind it: then they are the two."""
    return byte == 15 and EPOCHS[offset] ^ 1 << bit == EPOCHS[offset + 1]


@pytest.mark.parametrize("offset", range(COUNT - 1))
def test_whichever_batch_says_another_offset_or_epoch_it_alone_is_not_believed(offset: int) -> None:
    """But for the log's last: behind that is nobody to tell."""
    for byte, bit in FLIPS:
        if agrees_with_next(offset, byte, bit):
            continue
        rotten = RottenLog()
        rotten.flip(offset, byte, bit)
        log = rotten.recover(COUNT)
        assert [hole[:2] for hole in log.holes] == [(offset, offset + 1)], (byte, bit)
        assert (log.log_end_offset, log.epochs.entries) == (COUNT, rotten.epochs)


@pytest.mark.parametrize("offset", range(COUNT - 1))
def test_above_the_recovery_point_the_log_ends_before_it(offset: int) -> None:
    for byte, bit in FLIPS:
        if agrees_with_next(offset, byte, bit):
            continue
        rotten = RottenLog()
        rotten.flip(offset, byte, bit)
        log = rotten.recover(0)
        assert log.log_end_offset == offset, (byte, bit)
        assert log.epochs.entries == tuple(start for start in rotten.epochs if start.start_offset <= offset)


def test_an_epoch_that_begins_in_a_damaged_place_is_known_from_the_checkpoint() -> None:
    """Or other replicas' batches would seem to be of another history, and the place would never be mended."""
    rotten = RottenLog()
    rotten.flip(5, 70, 0)
    job = rotten.harness.log.verify_job(5)
    assert job is not None
    job.run()
    rotten.harness.log.on_verified(job)
    log = rotten.harness.open(recovery_point=None)
    assert [hole[:2] for hole in log.holes] == [(5, 6)]
    assert log.epochs.entries == rotten.epochs


def test_a_checkpoint_from_before_the_last_epochs_does_not_speak_against_batches_that_agree() -> None:
    rotten = RottenLog()
    rotten.note_epochs((0, 0), (1, 3))
    log = rotten.recover(0)
    assert (log.log_end_offset, log.epochs.entries) == (COUNT, rotten.epochs)


def test_a_checkpoint_of_a_history_that_was_cut_off_does_not_speak_against_batches_that_agree() -> None:
    rotten = RottenLog()
    rotten.note_epochs((0, 0), (1, 3), (2, 5), (5, 14))
    log = rotten.recover(0)
    assert (log.log_end_offset, log.epochs.entries) == (COUNT, rotten.epochs)


def test_without_a_checkpoint_the_batches_are_believed() -> None:
    rotten = RottenLog()
    rotten.files.unlink(f"{DIRECTORY}/{EPOCHS_FILE}")
    log = rotten.recover(0)
    assert (log.log_end_offset, log.epochs.entries) == (COUNT, rotten.epochs)


def test_epochs_that_are_read_anew_do_not_come_from_a_rotten_batch_that_nobody_has_verified() -> None:
    rotten = RottenLog()
    rotten.files.unlink(f"{DIRECTORY}/{EPOCHS_FILE}")
    rotten.flip(7, 13, 0)
    rotten.harness.log.roll()
    log = rotten.harness.open(recovery_point=COUNT + 1)
    assert log.epochs.entries == rotten.epochs


def test_a_checkpoint_in_which_the_last_epoch_begins_later_does_not_speak_against_batches_that_agree() -> None:
    """As after a cut behind which the same epoch went on, and a crash that lost the newer checkpoint."""
    rotten = RottenLog()
    rotten.note_epochs((0, 0), (1, 3), (3, 5), (4, 11), (6, 14), (7, 18))
    log = rotten.recover(0)
    assert (log.log_end_offset, log.epochs.entries) == (COUNT, rotten.epochs)
