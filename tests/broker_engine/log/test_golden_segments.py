"""Directories that Apache Kafka 4.3.1 wrote: our log opens a copy and finds exactly the records that Kafka found."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from broker_engine.log.checkpoints import METADATA_FILE, parse_partition_metadata
from broker_engine.log.config import LogConfig
from broker_engine.log.files import DiskFiles
from broker_engine.log.partition_log import PartitionLog
from broker_engine.records.batch import BatchHeader, Codec, Record, decode_records, iter_batches, parse_header
from tests.broker_engine.log.harness import ALL_BYTES, ManualClock

GOLDEN = Path(__file__).parents[2] / "golden" / "segments"
FOLDERS = sorted(path.name for path in GOLDEN.iterdir() if path.is_dir())
NOW_MS = 1_800_000_000_000


@pytest.fixture(params=FOLDERS)
def folder(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    copy = tmp_path / request.param
    shutil.copytree(GOLDEN / request.param, copy)
    for path in (copy, *copy.iterdir()):
        path.chmod(0o755)
    return copy


def open_log(folder: Path) -> PartitionLog:
    topic_id = parse_partition_metadata((folder / METADATA_FILE).read_bytes())
    assert topic_id is not None
    config = LogConfig(index_interval_bytes=150)
    return PartitionLog.open(DiskFiles(folder.parent), folder.name, config, ManualClock(NOW_MS), topic_id=topic_id)


def golden_batches(folder: Path) -> list[dict[str, Any]]:
    lines = [line for path in sorted(folder.glob("*.records.jsonl")) for line in path.read_text().splitlines()]
    return [json.loads(line) for line in lines]


def stored_batches(log: PartitionLog) -> list[memoryview]:
    batches: list[memoryview] = []
    offset = log.log_start_offset
    while offset < log.log_end_offset:
        read = log.read(offset, max_bytes=ALL_BYTES, end_offset=log.log_end_offset, at_least_one=True)
        if not read.ranges:
            break
        batches += iter_batches(read.ranges[0].read())
        read.release()
        offset = parse_header(batches[-1]).next_offset
    return batches


def as_record(golden: dict[str, Any]) -> Record:
    def unhex(text: str | None) -> bytes | None:
        return None if text is None else bytes.fromhex(text)

    headers = tuple((name, unhex(value)) for name, value in golden["headers"])
    return Record(golden["offset"], golden["timestamp"], unhex(golden["key"]), unhex(golden["value"]), headers)


def summary(header: BatchHeader) -> dict[str, Any]:
    return {
        "size": header.size_bytes,
        "base_offset": header.base_offset,
        "last_offset": header.last_offset,
        "leader_epoch": header.partition_leader_epoch,
        "crc": header.crc,
        "codec": Codec(header.codec).name.lower(),
        "timestamp_type": "LogAppendTime" if header.has_log_append_time else "CreateTime",
        "max_timestamp": header.max_timestamp,
        "producer_id": header.producer_id,
        "producer_epoch": header.producer_epoch,
        "base_sequence": header.base_sequence,
        "last_sequence": header.last_sequence,
        "transactional": header.is_transactional,
        "control": header.is_control,
    }


def test_every_batch_and_record_is_as_kafka_reads_it(folder: Path) -> None:
    stored = stored_batches(open_log(folder))
    golden = golden_batches(folder)
    assert len(stored) == len(golden)
    for batch, expected in zip(stored, golden, strict=True):
        header = parse_header(batch)
        assert summary(header) == {key: expected["batch"][key] for key in summary(header)}
        assert header.has_delete_horizon == (expected["batch"]["delete_horizon_ms"] is not None)
        assert decode_records(batch, max_bytes=ALL_BYTES) == [as_record(record) for record in expected["records"]]


def test_look_ups_by_offset_and_time_agree_with_a_plain_search(folder: Path) -> None:
    log = open_log(folder)
    golden = golden_batches(folder)
    records = [as_record(record) for batch in golden for record in batch["records"]]
    for offset in range(log.log_start_offset, log.log_end_offset):
        holder = next(batch["batch"] for batch in golden if batch["batch"]["last_offset"] >= offset)
        read = log.read(offset, max_bytes=1, end_offset=log.log_end_offset, at_least_one=True)
        assert (read.first_offset, read.size_bytes) == (holder["base_offset"], holder["size"])
        read.release()
    for timestamp in {record.timestamp + delta for record in records for delta in (-1, 0, 1)}:
        expected = next(((r.timestamp, r.offset) for r in records if r.timestamp >= timestamp), None)
        found = log.find_by_timestamp(timestamp, log.log_end_offset)
        assert (found[:2] if found else None) == expected
    highest = max(record.timestamp for record in records)
    found = log.max_timestamp_offset()
    assert found is not None
    assert found[:2] == (highest, next(record.offset for record in records if record.timestamp == highest))


def test_kafkas_epoch_checkpoint_is_taken_over_byte_for_byte(folder: Path) -> None:
    checkpoint = folder / "leader-epoch-checkpoint"
    written_by_kafka = checkpoint.read_bytes()
    log = open_log(folder)
    assert log.epochs.format() == written_by_kafka
    log.close()
    assert checkpoint.read_bytes() == written_by_kafka


def test_epochs_rebuilt_from_the_batches_say_the_same_of_every_record(folder: Path) -> None:
    offsets = [record["offset"] for batch in golden_batches(folder) for record in batch["records"]]
    with_checkpoint = open_log(folder)
    (folder / "leader-epoch-checkpoint").unlink()
    rebuilt = open_log(folder)
    assert [rebuilt.epoch_of(offset) for offset in offsets] == [with_checkpoint.epoch_of(offset) for offset in offsets]


def test_answers_are_the_same_without_kafkas_indexes(folder: Path) -> None:
    with_indexes = [bytes(batch) for batch in stored_batches(open_log(folder))]
    for path in folder.iterdir():
        if path.suffix in {".index", ".timeindex"}:
            path.unlink()
    assert [bytes(batch) for batch in stored_batches(open_log(folder))] == with_indexes
