"""`__telemetry` as a reader sees it: partition rows that follow the log, usage per tenant, the proof of sendfile."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from broker_engine.telemetry.schema import BrokerRow, Key, Kind, PartitionRow, Row, TenantRow, decode_key, decode_row
from broker_engine.telemetry.writer import CHANGED_PER_TICK_MAX
from broker_engine.wire.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from broker_engine.wire.messages.delete_topics import DeleteTopicsRequest
from broker_engine.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from tests.broker_engine.broker_process import BrokerProcess
from tests.broker_engine.handlers.calls import batch_of, create, fetch, produce, records_of, values_of
from tests.broker_engine.raw_client import RawClient


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    path: Path = tmp_path_factory.mktemp("telemetry") / "broker"
    listeners = {"default": "PLAINTEXT", "acme": "PLAINTEXT"}
    settings = {"listener.name.acme.tenant": "acme", "telemetry.interval.ms": "100"}
    with BrokerProcess(path, listeners=listeners, settings=settings) as process:
        yield process


class Reader:
    """Folds the stream as the dashboard does: the newest row of a key is the truth."""

    def __init__(self, client: RawClient, partition: int = 1) -> None:
        self._client = client
        self._partition = partition
        self._offset = 0
        self.rows: dict[Key, Row] = {}

    def poll(self) -> None:
        fetched = fetch(self._client, "__telemetry", self._offset, partition=self._partition, max_wait_ms=1000)
        for record in records_of(fetched):
            assert record.key is not None
            assert record.value is not None
            key = decode_key(record.key)
            self.rows[key] = decode_row(key.kind, record.value)
            self._offset = record.offset + 1

    def wait_for(self, kind: Kind, is_it: Callable[[Key, Row], bool]) -> Row:
        deadline = time.monotonic() + 20
        while time.monotonic() < deadline:
            self.poll()
            for key, row in self.rows.items():
                if key.kind is kind and is_it(key, row):
                    return row
        raise AssertionError(f"no such row among {self.rows}")


@pytest.fixture
def reader(broker: BrokerProcess) -> Iterator[Reader]:
    with RawClient(broker.address()) as client:
        yield Reader(client)


def test_a_partition_row_follows_the_log(broker: BrokerProcess, reader: Reader) -> None:
    with RawClient(broker.address("acme")) as client:
        topic = create(client)
        produce(client, topic, batch_of(b"a", b"b", b"c"))
    row = reader.wait_for(
        Kind.PARTITION,
        lambda key, row: (
            (key.tenant, key.name) == ("acme", topic) and isinstance(row, PartitionRow) and row.high_watermark == 3
        ),
    )
    assert isinstance(row, PartitionRow)
    assert (row.leader, row.isr, row.log_start_offset, row.log_end_offset) == (1, [1], 0, 3)
    assert [(replica.broker, replica.log_end_offset) for replica in row.replicas] == [(1, 3)]
    assert row.size_bytes > 0
    assert row.last_append_ms > 0


def test_a_deleted_partition_gets_a_last_word(broker: BrokerProcess, reader: Reader) -> None:
    with RawClient(broker.address()) as client:
        topic = create(client)
        reader.wait_for(Kind.PARTITION, lambda key, row: key.name == topic)
        client.call(DeleteTopicsRequest(topic_names=[topic]), 5)
    reader.wait_for(
        Kind.PARTITION, lambda key, row: key.name == topic and isinstance(row, PartitionRow) and row.is_deleted
    )


def test_more_busy_partitions_than_one_tick_tells_of_are_all_told_of(broker: BrokerProcess, reader: Reader) -> None:
    count, batch = CHANGED_PER_TICK_MAX + 100, batch_of(b"x")
    with RawClient(broker.address()) as client:
        topic = create(client, partitions=count, ack_durability="page-cache")
        data = [PartitionProduceData(index=index, records=batch) for index in range(count)]
        topic_data = [TopicProduceData(name=topic, partition_data=data)]
        client.call(ProduceRequest(acks=1, timeout_ms=10_000, topic_data=topic_data), 9)
    told: set[int] = set()

    def is_last(key: Key, row: Row) -> bool:
        if key.name == topic and isinstance(row, PartitionRow) and row.high_watermark == 1:
            told.add(key.partition)
        return len(told) == count

    reader.wait_for(Kind.PARTITION, is_last)


def test_usage_is_counted_for_the_tenant(broker: BrokerProcess, reader: Reader) -> None:
    with RawClient(broker.address("acme")) as client:
        topic = create(client)
        for _ in range(10):
            produce(client, topic, batch_of(b"x" * 1000))
        row = reader.wait_for(
            Kind.TENANT,
            lambda key, row: key.tenant == "acme" and isinstance(row, TenantRow) and row.records_in >= 10,
        )
    assert isinstance(row, TenantRow)
    assert row.bytes_in > 10_000
    assert row.requests >= 11


def test_a_large_read_is_sent_by_sendfile(broker: BrokerProcess, reader: Reader) -> None:
    size_bytes = 20 * 500_000
    with RawClient(broker.address()) as client:
        topic = create(client, ack_durability="page-cache")
        for _ in range(20):
            produce(client, topic, batch_of(b"x" * 500_000))
        offset = 0
        while offset < 20:
            offset += len(values_of(fetch(client, topic, offset, partition_max_bytes=4 << 20)))
    row = reader.wait_for(Kind.BROKER, lambda key, row: isinstance(row, BrokerRow) and row.sendfile_bytes >= size_bytes)
    assert isinstance(row, BrokerRow)
    assert row.sendfile_calls >= 10


def test_a_log_that_rotted_is_counted_until_somebody_mends_it(tmp_path: Path) -> None:
    process = BrokerProcess(tmp_path / "broker", settings={"telemetry.interval.ms": "100"})
    with process:
        with RawClient(process.address()) as client:
            topic = create(client)
            for value in (b"a", b"b", b"c"):
                produce(client, topic, batch_of(value))
        process.stop()
        (path,) = (process.data_dir / f"{topic}-0").glob("*.log")
        data = bytearray(path.read_bytes())
        data[len(data) // 2] ^= 1
        path.write_bytes(data)
        for index in path.parent.glob("*index"):
            index.unlink()
        process.start()
        with RawClient(process.address()) as client:
            Reader(client).wait_for(Kind.BROKER, lambda key, row: isinstance(row, BrokerRow) and row.damaged_count == 1)


def test_a_log_start_that_moved_is_shown(broker: BrokerProcess, reader: Reader) -> None:
    with RawClient(broker.address()) as client:
        topic = create(client)
        for _ in range(3):
            produce(client, topic, batch_of(b"x"))
        part = DeleteRecordsPartition(partition_index=0, offset=2)
        client.call(DeleteRecordsRequest(topics=[DeleteRecordsTopic(name=topic, partitions=[part])]), 2)
    row = reader.wait_for(
        Kind.PARTITION,
        lambda key, row: isinstance(row, PartitionRow) and key.name == topic and row.log_start_offset == 2,
    )
    assert isinstance(row, PartitionRow)
    assert row.high_watermark == 3
