"""DeleteRecords: the answers of protocol.md 2.11b, and records that stay gone after a crash."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from broker_engine.errors import ErrorCode
from broker_engine.wire.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from broker_engine.wire.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from tests.broker_engine.broker_process import BrokerProcess
from tests.broker_engine.handlers.calls import batch_of, create, fetch, produce, values_of
from tests.broker_engine.raw_client import RawClient


def delete(client: RawClient, topic: str, offset: int, *, partition: int = 0, version: int = 2) -> tuple[int, int]:
    """(error code, low watermark)"""
    asked = DeleteRecordsTopic(
        name=topic, partitions=[DeleteRecordsPartition(partition_index=partition, offset=offset)]
    )
    response = client.call(DeleteRecordsRequest(topics=[asked], timeout_ms=10_000), version)
    (answer,) = response.topics[0].partitions
    return answer.error_code, answer.low_watermark


def filled(client: RawClient, count: int = 10, **configs: str) -> str:
    topic = create(client, **configs)
    for number in range(count):
        assert produce(client, topic, batch_of(b"%d" % number)).error_code == 0
    return topic


def earliest(client: RawClient, topic: str) -> int:
    asked = ListOffsetsTopic(name=topic, partitions=[ListOffsetsPartition(partition_index=0, timestamp=-2)])
    answer: Any = client.call(ListOffsetsRequest(replica_id=-1, topics=[asked]), 6).topics[0].partitions[0]
    return int(answer.offset)


@pytest.mark.parametrize("version", [0, 1, 2])
def test_records_below_the_offset_are_gone(root: RawClient, version: int) -> None:
    topic = filled(root)
    assert delete(root, topic, 4, version=version) == (0, 4)
    assert earliest(root, topic) == 4
    assert fetch(root, topic, 3).error_code == ErrorCode.OFFSET_OUT_OF_RANGE
    after = fetch(root, topic, 4)
    assert (after.log_start_offset, values_of(after)[0]) == (4, b"4")


def test_minus_one_means_the_high_watermark(root: RawClient) -> None:
    topic = filled(root)
    assert delete(root, topic, -1) == (0, 10)
    assert values_of(fetch(root, topic, 10)) == []
    assert produce(root, topic, batch_of(b"next")).base_offset == 10


def test_below_the_log_start_there_is_nothing_to_do(root: RawClient) -> None:
    topic = filled(root)
    assert delete(root, topic, 6) == (0, 6)
    assert delete(root, topic, 2) == (0, 6)


def test_page_cache_topics_too(root: RawClient) -> None:
    topic = filled(root, ack_durability="page-cache")
    assert delete(root, topic, -1) == (0, 10)


@pytest.mark.parametrize(("offset", "partition", "code"), [(11, 0, 1), (-2, 0, 1), (0, 7, 3)])
def test_what_cannot_be(root: RawClient, offset: int, partition: int, code: int) -> None:
    topic = filled(root)
    assert delete(root, topic, offset, partition=partition) == (code, -1)
    assert earliest(root, topic) == 0


def test_unknown_internal_and_compacted_topics(root: RawClient) -> None:
    assert delete(root, "nowhere", 0) == (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, -1)
    assert delete(root, "__telemetry", 0) == (ErrorCode.INVALID_TOPIC_EXCEPTION, -1)
    assert delete(root, create(root, cleanup_policy="compact"), 0) == (ErrorCode.POLICY_VIOLATION, -1)
    assert delete(root, create(root, cleanup_policy="compact,delete"), 0) == (0, 0)


def test_another_tenants_topic_is_an_absent_one(acme: RawClient, globex: RawClient) -> None:
    topic = filled(acme)
    assert delete(globex, topic, 5) == (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, -1)
    assert earliest(acme, topic) == 0
    assert delete(acme, topic, 5) == (0, 5)


@pytest.mark.parametrize("durability", ["fsync", "page-cache"])
def test_deleted_records_stay_deleted_after_a_kill(tmp_path: Path, durability: str) -> None:
    with BrokerProcess(tmp_path / "broker") as broker:
        with RawClient(broker.address()) as client:
            topic = filled(client, ack_durability=durability)
            assert delete(client, topic, 7) == (0, 7)
        broker.kill()
        broker.start()
        with RawClient(broker.address()) as client:
            assert earliest(client, topic) == 7
            assert values_of(fetch(client, topic, 7)) == [b"7", b"8", b"9"]
