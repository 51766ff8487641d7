"""Apache Kafka's `kafka-dump-log` reads what we write, and finds nothing to complain about."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from broker_engine.log.config import LogConfig
from broker_engine.log.files import DiskFiles
from broker_engine.records.builder import NewRecord, build_batch
from broker_engine.records.compression import Codec
from tests.broker_engine.log.harness import DIRECTORY, START_MS, LogHarness
from tests.broker_engine.log.kafka_tools import dump_log, need_kafka_tools

pytestmark = pytest.mark.kafka_peer

COMPLAINTS = ("isvalid: false", "mismatch", "Mismatch", "Non-consecutive", "not valid", "non-monotonic", "out of order")
# The tool begins each file with "last offset -1", so it says this of every segment but the first, Kafka's own as well.
FIRST_OFFSET_QUIRK = re.compile(r"^Non-consecutive offsets in .*\n(  -1 is followed by \d+\n)(?!  )", re.MULTILINE)


def complaints_in(said: str) -> list[str]:
    said = FIRST_OFFSET_QUIRK.sub("", said)
    return [complaint for complaint in COMPLAINTS if complaint in said]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Segments by size, all codecs, three leader epochs, an idempotent producer, times out of order, headers."""
    need_kafka_tools()
    harness = LogHarness(DiskFiles(tmp_path), LogConfig(segment_bytes=2000, index_interval_bytes=200))
    for number in range(60):
        stamp = START_MS + number * 1000 - (5000 if number % 7 == 0 else 0)
        records = [
            NewRecord(stamp + index, b"key-%d" % index, None if index == 2 else b"value-%d" % number, [("h", b"\x00")])
            for index in range(3)
        ]
        batch = build_batch(
            records,
            codec=list(Codec)[number % len(Codec)],
            producer_id=7 if number % 2 else -1,
            producer_epoch=0 if number % 2 else -1,
            base_sequence=number // 2 * 3 if number % 2 else -1,
        )
        harness.append_batch(batch, epoch=number // 25, log_append_time_ms=stamp if number % 11 == 0 else None)
    harness.flush()
    assert harness.log.segment_count > 2
    harness.log.close()
    return tmp_path / DIRECTORY


def test_every_batch_and_record_is_valid_and_agrees_with_the_indexes(folder: Path) -> None:
    files = sorted(path for path in folder.iterdir() if path.suffix in {".log", ".index", ".timeindex"})
    said = dump_log(files, "--deep-iteration", "--print-data-log")
    assert not complaints_in(said), said
    assert len(re.findall(r"^baseOffset: .* isvalid: true$", said, re.MULTILINE)) == 60
    assert [int(offset) for offset in re.findall(r"^\| offset: (\d+) ", said, re.MULTILINE)] == list(range(180))
    assert {int(epoch) for epoch in re.findall(r"partitionLeaderEpoch: (\d+)", said)} == {0, 1, 2}
    assert set(re.findall(r"compresscodec: (\w+)", said)) == {"none", "gzip", "snappy", "lz4", "zstd"}
    assert len(re.findall(r"^offset: \d+ position: \d+$", said, re.MULTILINE)) > 10
    assert len(re.findall(r"^timestamp: \d+ offset: \d+$", said, re.MULTILINE)) > 10


def test_indexes_pass_kafkas_sanity_check(folder: Path) -> None:
    indexes = sorted(path for path in folder.iterdir() if path.suffix in {".index", ".timeindex"})
    said = dump_log(indexes, "--deep-iteration", "--index-sanity-check")
    assert said.count("passed sanity check") == len(indexes), said
    assert not complaints_in(said), said
