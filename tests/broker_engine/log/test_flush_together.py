"""Many logs brought to the disk by one sync of the whole file system."""

from __future__ import annotations

from pathlib import Path

import pytest

from broker_engine.errors import BrokerError
from broker_engine.log import syncfs
from broker_engine.log.config import LogConfig
from broker_engine.log.files import DiskFiles, Files, MemoryFiles
from broker_engine.log.flush import FlushJob, run_together
from broker_engine.log.partition_log import PartitionLog
from broker_engine.records.batch import parse_header
from broker_engine.records.builder import NewRecord, build_batch
from broker_engine.simulator.disk_faults import DiskCall
from broker_engine.simulator.sim_disk import SimDisk
from broker_engine.simulator.survival import KeepSynced
from tests.broker_engine.log.harness import TOPIC_ID, ManualClock

LOG_COUNT = 3


def open_log(files: Files, number: int) -> PartitionLog:
    return PartitionLog.open(files, f"orders-{number}", LogConfig(), ManualClock(), topic_id=TOPIC_ID)


def append(log: PartitionLog) -> None:
    batch = build_batch([NewRecord(1, b"k", b"v")])
    log.append(memoryview(batch), parse_header(batch), leader_epoch=0, log_append_time_ms=None)


def dirty_logs(files: Files) -> list[PartitionLog]:
    logs = [open_log(files, number) for number in range(LOG_COUNT)]
    for log in logs:
        append(log)
    return logs


def jobs_of(logs: list[PartitionLog]) -> list[FlushJob]:
    jobs = [log.flush_job() for log in logs]
    assert all(job is not None and job.small_files for job in jobs), "a new epoch has its checkpoint to write too"
    return [job for job in jobs if job is not None]


def test_all_logs_are_durable_with_their_checkpoints_names_and_directories(files: Files) -> None:
    logs = dirty_logs(files)
    jobs = jobs_of(logs)
    assert run_together(files, jobs) is None
    assert [log.on_flushed(job) for log, job in zip(logs, jobs, strict=True)] == [1] * LOG_COUNT
    assert not any(".tmp" in name for log in logs for name in files.list_dir(log.directory))
    if isinstance(files, MemoryFiles):
        files.crash()
        assert (files.sync_count, files.sync_all_count) == (0, 2)
    reopened = [open_log(files, number) for number in range(LOG_COUNT)]
    assert [(log.log_end_offset, log.latest_epoch) for log in reopened] == [(1, 0)] * LOG_COUNT


def test_the_simulated_disk_keeps_what_one_sync_covered() -> None:
    disk = SimDisk()
    run_together(disk, jobs_of(dirty_logs(disk)))
    found = disk.image(KeepSynced())
    assert [open_log(found, number).log_end_offset for number in range(LOG_COUNT)] == [1] * LOG_COUNT


@pytest.mark.parametrize("seed", range(8))
def test_after_an_error_those_logs_fail_that_lost_something_and_no_others(seed: int) -> None:
    disk = SimDisk(seed)
    logs = dirty_logs(disk)
    disk.faults.fail_next(DiskCall.SYNC_ALL)
    jobs = jobs_of(logs)
    error = run_together(disk, jobs)
    assert error is not None
    for log, job in zip(logs, jobs, strict=True):
        if job.error is None:
            assert log.on_flushed(job) == 1
        else:
            with pytest.raises(BrokerError):
                log.on_flushed(job)
    found = disk.image(KeepSynced())
    for number, log in enumerate(logs):
        assert log.is_offline or open_log(found, number).log_end_offset == 1, "what was promised is there"


def test_each_waiting_log_is_synced_once_after_an_error() -> None:
    files = MemoryFiles()
    jobs = jobs_of(dirty_logs(files))
    files.fail_next_sync_all = True
    assert run_together(files, jobs) is not None
    assert files.sync_count == sum(len(job.handles) for job in jobs)
    assert [job.error for job in jobs] == [None] * LOG_COUNT


def test_a_full_disk_holds_back_the_checkpoints_only() -> None:
    files = MemoryFiles()
    logs = dirty_logs(files)
    jobs = jobs_of(logs)
    files.no_space = True
    assert run_together(files, jobs) is None, "no disk failed"
    assert [log.on_flushed(job) for log, job in zip(logs, jobs, strict=True)] == [1] * LOG_COUNT
    assert [log.recovery_point for log in logs] == [0] * LOG_COUNT
    files.no_space = False
    assert not any(".tmp" in name for log in logs for name in files.list_dir(log.directory))


def test_a_log_that_is_gone_by_then_does_not_hold_up_the_others() -> None:
    files = MemoryFiles()
    logs = dirty_logs(files)
    jobs = jobs_of(logs)
    logs[0].delete()
    assert run_together(files, jobs) is None, "no disk failed"
    assert [log.on_flushed(job) for log, job in zip(logs, jobs, strict=True)] == [0, 1, 1]


def mounts_file(tmp_path: Path, *lines: tuple[str, Path]) -> Path:
    """As /proc/self/mountinfo: what part of a file system is mounted where."""
    path = tmp_path / "mountinfo"
    path.write_text("".join(f"36 35 98:0 {part} {where} rw - ext4 /dev/vdb rw\n" for part, where in lines))
    return path


def test_a_file_system_of_its_own(tmp_path: Path) -> None:
    disk = tmp_path / "my disk"
    root = disk / "data"
    root.mkdir(parents=True)
    mounts = mounts_file(tmp_path, ("/", Path(str(disk).replace(" ", "\\040"))))
    assert syncfs.has_to_itself(disk, mounts), "it is mounted there"
    (disk / "lost+found").mkdir()
    assert syncfs.has_to_itself(root, mounts), "it is all that is in there"
    (disk / "photos").mkdir()
    assert not syncfs.has_to_itself(root, mounts), "others keep things there too"
    assert not syncfs.has_to_itself(disk, mounts_file(tmp_path, ("/volumes/7", disk))), "a part of another's"
    assert not syncfs.has_to_itself(disk, tmp_path / "no such file")


def test_an_ordinary_directory_shares_its_file_system(tmp_path: Path) -> None:
    assert not DiskFiles(tmp_path).owns_file_system()
