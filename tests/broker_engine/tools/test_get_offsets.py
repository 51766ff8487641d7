"""`get-offsets` beside a running broker and on what it left."""

from __future__ import annotations

from pathlib import Path

import pytest

from broker_engine.__main__ import main
from broker_engine.tools.get_offsets import UNKNOWN, get_offsets
from tests.broker_engine.broker_process import BrokerProcess
from tests.broker_engine.handlers.calls import batch_of, create, produce
from tests.broker_engine.raw_client import RawClient


def test_offsets_of_a_running_and_of_a_stopped_broker(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    broker = BrokerProcess(tmp_path / "broker")
    with broker:
        with RawClient(broker.address()) as client:
            topic = create(client, partitions=2)
            for _ in range(3):
                produce(client, topic, batch_of(b"a", b"b"), partition=1)
        running = list(get_offsets(broker.data_dir, topic))
        assert [(row.partition, row.log_start_offset, row.log_end_offset) for row in running] == [(0, 0, 0), (1, 0, 6)]
        assert all(row.high_watermark in {UNKNOWN, 0, 6} for row in running)
        broker.stop()
    assert [tuple(row) for row in get_offsets(broker.data_dir, topic)] == [(topic, 0, 0, 0, 0), (topic, 1, 0, 6, 6)]
    assert main(["get-offsets", "--data-dir", str(broker.data_dir), topic]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split() for line in lines[1:]] == [[topic, "0", "0", "0", "0"], [topic, "1", "0", "6", "6"]]


def test_a_data_directory_that_is_not_there_is_told_in_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["get-offsets", "--data-dir", str(tmp_path / "absent")]) == 1
    assert capsys.readouterr().err.startswith("broker_engine: ")
