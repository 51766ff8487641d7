"""Groups with more offsets than one batch can remove, on a broker that takes only small ones."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from broker_engine.wire.messages.delete_groups import DeleteGroupsRequest
from broker_engine.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from broker_engine.wire.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from broker_engine.wire.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestGroup
from tests.broker_engine.broker_process import BrokerProcess
from tests.broker_engine.cluster.cluster_process import wait_for
from tests.broker_engine.handlers.calls import create, new_name
from tests.broker_engine.handlers.test_groups import ready
from tests.broker_engine.raw_client import RawClient

SETTINGS = {"message.max.bytes": "1000", "offsets.retention.check.interval.ms": "500"}
PARTITION_COUNT = 60
COMMITTED_AT_ONCE = 5
_LAST_VERSION_WITH_RETENTION = 4


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RawClient]:
    with BrokerProcess(tmp_path_factory.mktemp("small") / "broker", settings=SETTINGS) as process:
        with RawClient(process.address()) as client:
            yield client
        assert "Traceback" not in process.log, process.log


@pytest.fixture
def topic(small: RawClient) -> str:
    return create(small, partitions=PARTITION_COUNT)


def commit_all(client: RawClient, topic: str, *, retention_ms: int = -1) -> str:
    group = ready(client, new_name("group"))
    for first in range(0, PARTITION_COUNT, COMMITTED_AT_ONCE):
        indexes = range(first, first + COMMITTED_AT_ONCE)
        asked = [OffsetCommitRequestPartition(partition_index=index, committed_offset=7) for index in indexes]
        request = OffsetCommitRequest(
            group_id=group,
            retention_time_ms=retention_ms,
            topics=[OffsetCommitRequestTopic(name=topic, partitions=asked)],
        )
        answer = client.call(request, _LAST_VERSION_WITH_RETENTION)
        assert {each.error_code for each in answer.topics[0].partitions} == {0}
    return group


def offset_count(client: RawClient, group: str) -> int:
    answer = client.call(OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group_id=group, topics=None)]), 8)
    return sum(len(topic.partitions) for topic in answer.groups[0].topics)


def test_a_group_is_deleted_with_more_offsets_than_fit_into_a_batch(small: RawClient, topic: str) -> None:
    group = commit_all(small, topic)
    assert offset_count(small, group) == PARTITION_COUNT
    assert small.call(DeleteGroupsRequest(groups_names=[group]), 2).results[0].error_code == 0
    assert offset_count(small, group) == 0


def test_more_offsets_than_fit_into_a_batch_are_deleted(small: RawClient, topic: str) -> None:
    group = commit_all(small, topic)
    asked = [OffsetDeleteRequestPartition(partition_index=index) for index in range(PARTITION_COUNT - 1)]
    topics = [OffsetDeleteRequestTopic(name=topic, partitions=asked)]
    answer = small.call(OffsetDeleteRequest(group_id=group, topics=topics), 0)
    assert {each.error_code for each in answer.topics[0].partitions} == {0}
    assert offset_count(small, group) == 1


def test_more_offsets_than_fit_into_a_batch_expire(small: RawClient, topic: str) -> None:
    group = commit_all(small, topic, retention_ms=300)
    wait_for("all offsets are gone", lambda: offset_count(small, group) == 0)
