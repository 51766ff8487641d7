"""Below the floor records are refused; with room again they are taken, without a restart."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from broker_engine.errors import BrokerError, ErrorCode
from broker_engine.server.disk_floor import DiskFloor, DiskSpace, floor_of
from broker_engine.wire.messages.delete_topics import DeleteTopicsRequest
from tests.broker_engine.broker_process import BrokerProcess
from tests.broker_engine.handlers.calls import batch_of, create, describe, fetch, produce
from tests.broker_engine.raw_client import RawClient

GIB = 1 << 30
SMALL_DISK_BYTES = 48 << 20


@pytest.mark.parametrize(("total_gib", "floor_gib"), [(1000, 1), (100, 1), (20, 1), (10, 0.5), (2, 0.1)], ids=str)
def test_the_default_goes_by_the_size_of_the_disk(total_gib: float, floor_gib: float) -> None:
    assert floor_of(DiskSpace(int(total_gib * GIB), 0), None) == int(floor_gib * GIB)


def test_the_floor_is_left_a_little_above_where_it_was_met() -> None:
    floor = DiskFloor(1000, lambda: DiskSpace(10_000, 999))
    floor.check_writable()
    floor.look()
    with pytest.raises(BrokerError, match="999 bytes free") as caught:
        floor.check_writable()
    assert caught.value.code is ErrorCode.KAFKA_STORAGE_ERROR
    floor.update(DiskSpace(10_000, 1001))
    assert floor.is_low
    floor.update(DiskSpace(10_000, 1050))
    floor.check_writable()


def test_zero_is_no_floor() -> None:
    floor = DiskFloor(0, lambda: DiskSpace(10_000, 0))
    floor.look()
    floor.check_writable()


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    path = tmp_path / "disk"
    path.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", f"size={SMALL_DISK_BYTES}", "tmpfs", str(path)]
    if subprocess.run(command, capture_output=True, check=False).returncode:
        pytest.skip("mounting a small file system takes root")
    yield path
    subprocess.run(["umount", "-l", str(path)], check=True)


def test_a_full_disk_refuses_records_and_serves_everything_else(small_disk: Path) -> None:
    with BrokerProcess(small_disk / "broker") as broker, RawClient(broker.address()) as client:
        big, small = create(client), create(client)
        assert produce(client, small, batch_of(b"kept")).error_code == 0
        fill(client, big)
        assert produce(client, small, batch_of(b"more")).error_code == ErrorCode.KAFKA_STORAGE_ERROR
        assert "records are refused" in broker.log
        assert fetch(client, small).high_watermark == 1
        assert describe(client, big).error_code == 0
        (deleted,) = client.call(DeleteTopicsRequest(topic_names=[big]), 5).responses
        assert deleted.error_code == 0
        wait_until_writable(client, small)
        assert "records are taken again" in broker.log


def fill(client: RawClient, topic: str) -> None:
    batch = batch_of(b"x" * 900_000)
    for _ in range(SMALL_DISK_BYTES // len(batch) + 1):
        answer = produce(client, topic, batch)
        if answer.error_code:
            assert answer.error_code == ErrorCode.KAFKA_STORAGE_ERROR
            break
    else:
        raise AssertionError("the disk took more than it can hold")
    # The disk itself may have been full before the next look at it: the floor still has to be met.
    deadline = time.monotonic() + 20
    while "nearly full" not in str(produce(client, topic, batch_of(b"x")).error_message):
        assert time.monotonic() < deadline


def wait_until_writable(client: RawClient, topic: str) -> None:
    deadline = time.monotonic() + 20
    while produce(client, topic, batch_of(b"more")).error_code:
        assert time.monotonic() < deadline
