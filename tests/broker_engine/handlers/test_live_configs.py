"""Topic configs that change while the topic is in use: in force for the next request, without a restart."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.broker_engine.broker_process import BrokerProcess
from tests.broker_engine.handlers.calls import batch_of, create, fetch, produce
from tests.broker_engine.handlers.test_admin import alter
from tests.broker_engine.raw_client import RawClient

HOUR_MS = 3_600_000
NO_WAIT_MS = "200"


@pytest.fixture(scope="module")
def live(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    """Looks for old segments all the time, and never checkpoints by itself."""
    settings = {"log.retention.check.interval.ms": NO_WAIT_MS, "log.flush.offset.checkpoint.interval.ms": "3600000"}
    with BrokerProcess(tmp_path_factory.mktemp("live") / "broker", settings=settings) as process:
        yield process


@pytest.fixture
def client(live: BrokerProcess) -> Iterator[RawClient]:
    with RawClient(live.address()) as raw_client:
        yield raw_client


def wait_for(is_so: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 20
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def segments(broker: BrokerProcess, topic: str) -> list[Path]:
    return sorted((broker.data_dir / f"{topic}-0").glob("*.log"))


def test_a_smaller_segment_size_rolls_with_the_next_append(live: BrokerProcess, client: RawClient) -> None:
    topic = create(client)
    batch = batch_of(b"x" * 700_000)
    for _ in range(2):
        produce(client, topic, batch)
    assert len(segments(live, topic)) == 1
    assert alter(client, topic, segment_bytes=str(1 << 20)) == 0
    produce(client, topic, batch)
    assert len(segments(live, topic)) == 2


def test_a_shorter_retention_removes_what_is_too_old_now(live: BrokerProcess, client: RawClient) -> None:
    topic = create(client, segment_bytes=str(1 << 20))
    for _ in range(4):
        produce(client, topic, batch_of(b"x" * 700_000))
    assert fetch(client, topic).log_start_offset == 0
    assert alter(client, topic, retention_bytes="1000000") == 0
    wait_for(lambda: int(fetch(client, topic, 4).log_start_offset) > 0)
    assert alter(client, topic, retention_ms="1") == 0
    wait_for(lambda: int(fetch(client, topic, 4).log_start_offset) == 4)


def test_whose_clock_counts_changes_with_the_config(client: RawClient) -> None:
    topic = create(client)
    assert produce(client, topic, batch_of(b"x")).log_append_time_ms == -1
    assert alter(client, topic, message_timestamp_type="LogAppendTime") == 0
    assert produce(client, topic, batch_of(b"x")).log_append_time_ms > 0


def test_timestamp_bounds_hold_from_now_on(client: RawClient) -> None:
    topic = create(client)
    old = batch_of(b"x", now_ms=int(time.time() * 1000) - HOUR_MS)
    assert produce(client, topic, old).error_code == 0
    assert alter(client, topic, message_timestamp_before_max_ms=str(HOUR_MS // 2)) == 0
    assert produce(client, topic, old).error_code == 32
    assert alter(client, topic, message_timestamp_before_max_ms=None) == 0
    assert produce(client, topic, old).error_code == 0


def test_durability_changes_both_ways_and_nothing_is_lost(client: RawClient) -> None:
    topic = create(client)
    for durability in ("page-cache", "fsync", "page-cache"):
        assert produce(client, topic, batch_of(b"x")).error_code == 0
        assert alter(client, topic, ack_durability=durability) == 0
    assert produce(client, topic, batch_of(b"x")).base_offset == 3
    assert fetch(client, topic).high_watermark == 4


def test_a_config_that_changed_is_still_so_after_a_restart(tmp_path: Path) -> None:
    with BrokerProcess(tmp_path / "broker") as broker:
        with RawClient(broker.address()) as client:
            topic = create(client)
            alter(client, topic, max_message_bytes="1000")
        broker.kill()
        broker.start()
        with RawClient(broker.address()) as client:
            assert produce(client, topic, batch_of(b"x" * 2000)).error_code == 10
