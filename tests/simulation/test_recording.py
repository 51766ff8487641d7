"""A recording, carried out again, gives the same files; a crash may come between any two of its steps."""

from __future__ import annotations

from pathlib import Path

import pytest

from broker_engine.log.config import LogConfig
from broker_engine.log.files import DiskFiles, Files
from broker_engine.simulator.recording import (
    Appended,
    Created,
    DirectorySynced,
    RecordingFiles,
    Renamed,
    Replay,
    Synced,
)
from broker_engine.simulator.sim_disk import SimDisk
from broker_engine.simulator.survival import KeepSynced
from tests.broker_engine.log.harness import LogHarness, numbered


def contents(files: Files, path: str = "") -> dict[str, bytes]:
    found: dict[str, bytes] = {}
    for name in files.list_dir(path):
        inner = f"{path}/{name}".lstrip("/")
        try:
            found[inner] = files.read_small(inner)
        except IsADirectoryError:
            found |= contents(files, inner)
    return found


def replayed(recording: RecordingFiles) -> SimDisk:
    replay = Replay(SimDisk())
    for operation in recording.operations:
        replay.perform(operation)
    return replay.disk


def test_a_log_on_real_files_is_the_same_in_the_replay(tmp_path: Path) -> None:
    recording = RecordingFiles(DiskFiles(tmp_path))
    harness = LogHarness(recording, LogConfig(segment_bytes=400, index_interval_bytes=100))
    for number, value in enumerate(numbered(30)):
        harness.append(value, epoch=number // 10)
        if number % 7 == 0:
            harness.flush()
    for segment in harness.log.delete_records_before(12):
        segment.remove()
    harness.log.truncate_to(25)
    harness.log.close()
    assert contents(replayed(recording)) == contents(DiskFiles(tmp_path))


def test_an_atomic_write_is_recorded_step_by_step(tmp_path: Path) -> None:
    recording = RecordingFiles(DiskFiles(tmp_path))
    recording.write_atomic("f", b"data", is_durable=True)
    assert recording.operations == [
        Created(0, "f.tmp"),
        Appended(0, b"data"),
        Synced(0, 1),
        Renamed("f.tmp", "f"),
        DirectorySynced(""),
    ]
    assert contents(replayed(recording).image(KeepSynced())) == {"f": b"data"}


def test_a_sync_covers_only_what_was_written_before_it_began(tmp_path: Path) -> None:
    recording = RecordingFiles(DiskFiles(tmp_path))
    handle = recording.open("f", create=True)
    handle.append([b"before"])
    handle.append([b", meanwhile"])
    recording.operations.append(Synced(0, 1))
    recording.sync_dir("")
    assert contents(replayed(recording).image(KeepSynced())) == {"f": b"before"}


def test_a_deleted_partition_is_gone_in_the_replay_too(tmp_path: Path) -> None:
    recording = RecordingFiles(DiskFiles(tmp_path))
    harness = LogHarness(recording)
    harness.append(b"a")
    harness.log.delete(renamed_to="tenants/demo/orders-0.x-delete")
    assert contents(replayed(recording)) == {}
    assert replayed(recording).list_dir("tenants/demo") == []


def test_a_recording_refuses_to_begin_in_the_middle(tmp_path: Path) -> None:
    (tmp_path / "old").touch()
    with pytest.raises(AssertionError, match="empty"):
        RecordingFiles(DiskFiles(tmp_path))
