"""`dump-log` on Kafka's files and on damaged ones: every record is there, nothing makes it stop."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from broker_engine.__main__ import main
from broker_engine.metadata.records import CredentialRecord, encode_record
from broker_engine.records.builder import NewRecord, build_batch
from broker_engine.tools.dump_log import dump
from tests.broker_engine.log.test_compaction import hostile_batch

GOLDEN = Path(__file__).parents[2] / "golden" / "segments"
LOGS = sorted(str(path.relative_to(GOLDEN)) for path in GOLDEN.glob("*/*.log"))
FIRST = f"{0:020d}.log"


@pytest.mark.parametrize("name", LOGS)
def test_every_batch_and_record_of_kafkas_logs_is_printed(name: str) -> None:
    path = GOLDEN / name
    golden = [json.loads(line) for line in path.with_suffix(".records.jsonl").read_text().splitlines()]
    lines = list(dump(path))
    assert not [line for line in lines if "DAMAGED" in line or "cannot be" in line or "CRC WRONG" in line]
    assert len([line for line in lines if line.startswith("offsets ")]) == len(golden)
    offsets = [int(line.split()[2]) for line in lines if line.startswith("| offset ")]
    assert offsets == [record["offset"] for batch in golden for record in batch["records"]]


@pytest.mark.parametrize("suffix", [".index", ".timeindex", ".txnindex", ".snapshot"])
def test_indexes_and_snapshots_have_a_line_per_entry(suffix: str) -> None:
    words = {
        ".index": "position: ",
        ".timeindex": "timestamp: ",
        ".txnindex": "version: 0 ",
        ".snapshot": "producerId: ",
    }
    for path in GOLDEN.glob(f"golden-0/*{suffix}"):
        dumped_by_kafka = (path.parent / "dump.txt").read_text().split(f"/{path.name}\n")[1].split("Dumping ")[0]
        expected = [line for line in dumped_by_kafka.splitlines() if words[suffix] in line]
        assert len(list(dump(path))) == len(expected)


def test_metadata_records_are_decoded_and_credentials_are_not_shown(tmp_path: Path) -> None:
    folder = tmp_path / "__cluster_metadata-0"
    folder.mkdir()
    secret = b"canary-of-a-stored-key-0123456789"
    record = CredentialRecord()
    for field in ("stored_key", "server_key", "salt"):
        if hasattr(record, field):
            setattr(record, field, secret)
    (folder / FIRST).write_bytes(build_batch([NewRecord(1, None, encode_record(record))]))
    text = "\n".join(dump(folder / FIRST))
    assert "CredentialRecord(" in text
    assert "canary" not in text


def test_damage_and_hostile_batches_are_named_and_the_rest_is_printed(tmp_path: Path) -> None:
    first, last = (
        build_batch([NewRecord(1, b"k", value)], base_offset=number) for number, value in ((0, b"a"), (9, b"z"))
    )
    path = tmp_path / FIRST
    path.write_bytes(first + b"rubbish" * 20 + hostile_batch() + last)
    lines = list(dump(path))
    assert "DAMAGED: no batch from byte" in lines[2]
    assert [line for line in lines if line.startswith("| cannot be decoded: ")]
    assert lines[-1].endswith("key 'k' value 'z'")


def test_the_command_line_prints_or_says_in_one_line_why_not(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copy(GOLDEN / "golden-0" / FIRST, tmp_path)
    assert main(["dump-log", str(tmp_path / FIRST)]) == 0
    assert capsys.readouterr().out.count("\n| offset ") == 40
    assert main(["dump-log", str(tmp_path / "absent.log")]) == 1
    assert main(["dump-log", str(tmp_path / "some.txt")]) == 1
    assert all(line.startswith("broker_engine: ") for line in capsys.readouterr().err.splitlines())
