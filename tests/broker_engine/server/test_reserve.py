"""F12: a full disk never stops the quorum: its log and its votes have room that was kept for them."""

from __future__ import annotations

import pytest

from broker_engine.clock import SystemClock
from broker_engine.errors import BrokerError
from broker_engine.log.memory_files import MemoryFiles
from broker_engine.quorum.ready import Entry
from broker_engine.server.metadata_log import MetadataLog
from broker_engine.server.reserve import PATH, SIZE_BYTES


class SmallDisk(MemoryFiles):
    """What a file leaves when it goes can be written again."""

    def unlink(self, path: str) -> None:
        if self.free_bytes is not None:
            self.free_bytes += len(self._files[path].data)
        super().unlink(path)


def entry(log: MetadataLog) -> Entry:
    return Entry(1, log.end_offset, (b"a change",))


def fill(log: MetadataLog) -> None:
    for _ in range(SIZE_BYTES):
        log.append(entry(log))


def test_a_change_is_written_into_the_room_that_was_kept() -> None:
    files = SmallDisk()
    log = MetadataLog.open(files, SystemClock())
    log.append(entry(log))
    files.no_space = True
    for _ in range(20):
        log.append(entry(log))
    assert log.end_offset == 21
    assert not files.exists(PATH)
    files.no_space = False
    log.save_point()
    assert files.exists(PATH), "kept again, for the next time"


def test_where_nothing_is_left_the_disk_is_to_blame() -> None:
    files = SmallDisk()
    log = MetadataLog.open(files, SystemClock())
    log.append(entry(log))
    files.no_space = True
    with pytest.raises(BrokerError, match="disk"):
        fill(log)
    assert log.end_offset > 1_000


def test_a_disk_that_is_full_from_the_start_keeps_no_room() -> None:
    files = SmallDisk()
    MetadataLog.open(files, SystemClock())._log.close()
    files.unlink(PATH)
    files.free_bytes = 100
    assert not MetadataLog.open(files, SystemClock()).reserve.is_there


def test_a_node_whose_disk_is_full_can_stop() -> None:
    files = SmallDisk()
    log = MetadataLog.open(files, SystemClock())
    log.append(entry(log))
    log.reserve.release()
    files.no_space = True
    log.close()
    files.no_space = False
    assert MetadataLog.open(files, SystemClock()).end_offset == 1
