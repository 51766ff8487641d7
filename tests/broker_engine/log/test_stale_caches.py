"""What a crash leaves of index files and checkpoints that were not durable yet is not believed."""

from __future__ import annotations

from broker_engine.log.config import LogConfig
from broker_engine.log.memory_files import MemoryFiles
from tests.broker_engine.log.harness import DIRECTORY, START_MS, LogHarness

EPOCHS = f"{DIRECTORY}/leader-epoch-checkpoint"
TIME_ENTRY_BYTES = 12


def test_times_are_found_though_the_crash_kept_less_of_their_index_than_of_the_offsets() -> None:
    files = MemoryFiles()
    harness = LogHarness(files, LogConfig(segment_bytes=4_000, index_interval_bytes=200))
    stamps = [START_MS + 10 * number for number in range(8)]
    stamps[6], stamps[7] = stamps[5] - 3, stamps[5] - 2  # the highest time is not the last one
    for stamp in stamps:
        harness.append(b"x" * 400, timestamp_ms=stamp)
    while harness.log.log_end_offset < 12:
        harness.append(b"y" * 900, timestamp_ms=START_MS)  # rolls
    (times,) = [name for name in files.list_dir(DIRECTORY) if name.startswith("0" * 20) and name.endswith(".timeindex")]
    path = f"{DIRECTORY}/{times}"
    files.write_atomic(path, files.read_small(path)[: 2 * TIME_ENTRY_BYTES], is_durable=True)
    log = harness.open(recovery_point=8)
    found = log.find_by_timestamp(stamps[5], log.log_end_offset)
    assert found is not None
    assert found.offset == 5


def test_an_epoch_whose_begin_is_from_before_a_truncation_is_read_anew_from_the_batches() -> None:
    files = MemoryFiles()
    harness = LogHarness(files)
    for _ in range(3):
        harness.append(b"x", epoch=15)
    harness.flush()
    harness.append(b"y", epoch=16)
    harness.append(b"y", epoch=16)
    files.write_atomic(EPOCHS, b"0\n2\n15 0\n16 5\n", is_durable=True)
    log = harness.open(recovery_point=3)
    assert [log.epoch_of(offset) for offset in range(5)] == [15, 15, 15, 16, 16]
