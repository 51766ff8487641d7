"""The data directory as a whole: one broker at a time, whose it is, and how it was left."""

from __future__ import annotations

from pathlib import Path
from uuid import uuid4

import pytest

from broker_engine.config import ConfigError
from broker_engine.names import Name
from broker_engine.server.checkpoints import (
    HIGH_WATERMARKS,
    RECOVERY_POINTS,
    parse_checkpoint,
    read_checkpoint,
    write_checkpoint,
)
from broker_engine.server.data_dir import DataDir, Meta
from broker_engine.server.directories import find_vanished


def test_a_second_broker_on_the_same_directory_is_refused(tmp_path: Path) -> None:
    first, second = DataDir(tmp_path), DataDir(tmp_path)
    first.lock()
    with pytest.raises(ConfigError, match="another broker runs"):
        second.lock()
    first.unlock()
    second.lock()


def test_a_directory_stays_with_its_cluster_and_node(tmp_path: Path) -> None:
    assert DataDir(tmp_path).load_meta(1) is None
    meta = Meta("a" * 22, 1, uuid4(), is_founder=True)
    DataDir(tmp_path).write_meta(meta)
    assert DataDir(tmp_path).load_meta(1) == meta
    with pytest.raises(ConfigError, match="belongs to node 1"):
        DataDir(tmp_path).load_meta(2)


def test_the_clean_marker_is_gone_once_it_was_read(tmp_path: Path) -> None:
    data_dir = DataDir(tmp_path)
    assert data_dir.take_clean_marker() is None
    data_dir.write_clean_marker(7)
    assert data_dir.take_clean_marker() == 7
    assert data_dir.take_clean_marker() is None


def test_checkpoints_carry_tenants_and_survive_damage(tmp_path: Path) -> None:
    files = DataDir(tmp_path).files
    offsets = {(Name("", "orders"), 0): 5, (Name("demo", "orders"), 3): 0}
    write_checkpoint(files, HIGH_WATERMARKS, offsets.items())
    assert (tmp_path / HIGH_WATERMARKS).read_text() == "0\n2\norders 0 5\ndemo/orders 3 0\n"
    assert read_checkpoint(files, HIGH_WATERMARKS) == offsets
    (tmp_path / HIGH_WATERMARKS).write_text("0\n9\norders 0 5\n")
    assert read_checkpoint(files, HIGH_WATERMARKS) == {}


def test_kafkas_own_checkpoint_reads_as_root() -> None:
    assert parse_checkpoint(b"0\n1\n__consumer_offsets 49 12\n") == {(Name("", "__consumer_offsets"), 49): 12}


def test_directories_that_had_records_and_have_no_log_are_named(tmp_path: Path) -> None:
    files = DataDir(tmp_path).files
    kept, never_written, emptied = Name("", "kept"), Name("", "never-written"), Name("", "emptied")
    offsets = {(kept, 0): 5, (kept, 1): 6, (never_written, 0): 0, (emptied, 0): 4, (Name("demo", "lost"), 3): 7}
    write_checkpoint(files, RECOVERY_POINTS, offsets.items())
    for name in (
        "kept-0/00000000000000000000.log",
        "kept-1/00000000000000000000.log.swap",
        "emptied-0/partition.metadata",
    ):
        files.make_dirs(str(Path(name).parent))
        (tmp_path / name).touch()
    assert find_vanished(files) == ["emptied-0", "tenants/demo/lost-3"]
