"""Who asks for the same thing again and again in one request is answered once: answers are many times as large as the
names that ask for them, and a broker that wrote each of them down for every repetition would be out of memory.
"""

from __future__ import annotations

from uuid import uuid4

from broker_engine.errors import ErrorCode
from broker_engine.handlers.list_offsets import LATEST
from broker_engine.metadata.records import RESOURCE_TOPIC
from broker_engine.wire.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from broker_engine.wire.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from broker_engine.wire.messages.describe_groups import DescribeGroupsRequest
from broker_engine.wire.messages.describe_log_dirs import DescribableLogDirTopic, DescribeLogDirsRequest
from broker_engine.wire.messages.describe_producers import DescribeProducersRequest, TopicRequest
from broker_engine.wire.messages.describe_transactions import DescribeTransactionsRequest
from broker_engine.wire.messages.find_coordinator import FindCoordinatorRequest
from broker_engine.wire.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from broker_engine.wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from broker_engine.wire.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
)
from tests.broker_engine.handlers.calls import create, new_name, topic_id_of
from tests.broker_engine.handlers.test_groups import commit, ready
from tests.broker_engine.raw_client import RawClient

MANY = 3_000


def test_a_group_is_described_once(acme: RawClient) -> None:
    one, other = ready(acme, new_name("group")), new_name("group")
    described = acme.call(DescribeGroupsRequest(groups=[one, other] * MANY), 5).groups
    assert [group.group_id for group in described] == [one, other]
    described = acme.call(ConsumerGroupDescribeRequest(group_ids=[one, other] * MANY), 1).groups
    assert [group.group_id for group in described] == [one, other]


def test_a_committed_offset_is_shown_once(acme: RawClient) -> None:
    group, topic = ready(acme, new_name("group")), create(acme, partitions=3)
    assert commit(acme, group, topic, 7, partition=1, committed_metadata="m" * 4_000) == 0
    asked = [
        OffsetFetchRequestTopics(name=topic, partition_indexes=[1, 0] * MANY),
        OffsetFetchRequestTopics(name=topic, partition_indexes=[2, 1]),
    ]
    groups = [OffsetFetchRequestGroup(group_id=group, topics=asked)] * 2
    (answered,) = acme.call(OffsetFetchRequest(groups=groups), 8).groups
    (shown,) = answered.topics
    assert [(row.partition_index, row.committed_offset) for row in shown.partitions] == [(1, 7), (0, -1), (2, -1)]


def test_a_committed_offset_is_shown_once_to_older_clients_and_by_topic_id(acme: RawClient) -> None:
    group, topic = ready(acme, new_name("group")), create(acme)
    assert commit(acme, group, topic, 7) == 0
    old = [OffsetFetchRequestTopic(name=topic, partition_indexes=[0] * MANY)] * 2
    (shown,) = acme.call(OffsetFetchRequest(group_id=group, topics=old), 7).topics
    assert [row.committed_offset for row in shown.partitions] == [7]
    new = [OffsetFetchRequestTopics(topic_id=topic_id_of(acme, topic), partition_indexes=[0] * MANY)] * 2
    groups = [OffsetFetchRequestGroup(group_id=group, topics=new)]
    (shown,) = acme.call(OffsetFetchRequest(groups=groups), 10).groups[0].topics
    assert [row.committed_offset for row in shown.partitions] == [7]


def test_a_topic_is_shown_once_whatever_names_stand_beside_its_id(acme: RawClient) -> None:
    topic_id = topic_id_of(acme, create(acme, partitions=50))
    asked = [MetadataRequestTopic(topic_id=topic_id, name=f"also-{number}") for number in range(MANY)]
    asked += [MetadataRequestTopic(topic_id=uuid4(), name=None)]
    known, unknown = acme.call(MetadataRequest(topics=asked), 12).topics
    assert (known.topic_id, len(known.partitions)) == (topic_id, 50)
    assert unknown.error_code == ErrorCode.UNKNOWN_TOPIC_ID


def test_configs_of_a_topic_are_shown_once(acme: RawClient) -> None:
    topic = create(acme)
    asked = [DescribeConfigsResource(resource_type=RESOURCE_TOPIC, resource_name=topic, configuration_keys=None)]
    (shown,) = acme.call(DescribeConfigsRequest(resources=asked * MANY, include_documentation=True), 4).results
    assert shown.resource_name == topic


def test_producers_and_sizes_of_a_partition_are_shown_once(acme: RawClient) -> None:
    topic = create(acme, partitions=2)
    asked = [TopicRequest(name=topic, partition_indexes=[1, 0] * MANY), TopicRequest(name=topic, partition_indexes=[1])]
    (shown,) = acme.call(DescribeProducersRequest(topics=asked), 0).topics
    assert [row.partition_index for row in shown.partitions] == [1, 0]
    sizes = [DescribableLogDirTopic(topic=topic, partitions=[0]), DescribableLogDirTopic(topic=topic, partitions=[1])]
    (shown,) = acme.call(DescribeLogDirsRequest(topics=sizes * MANY), 4).results[0].topics
    assert [row.partition_index for row in shown.partitions] == [0, 1]


def test_a_transaction_and_a_coordinator_are_shown_once(acme: RawClient) -> None:
    group = ready(acme, new_name("group"))
    (found,) = acme.call(FindCoordinatorRequest(coordinator_keys=[group] * MANY), 4).coordinators
    assert (found.key, found.error_code) == (group, 0)
    (shown,) = acme.call(DescribeTransactionsRequest(transactional_ids=["transfers"] * MANY), 0).transaction_states
    assert shown.transactional_id == "transfers"


def test_offsets_of_a_partition_are_not_looked_up_twice_also_where_its_topic_stands_twice(acme: RawClient) -> None:
    topic = create(acme)
    asked = ListOffsetsTopic(name=topic, partitions=[ListOffsetsPartition(partition_index=0, timestamp=LATEST)])
    (answered,) = acme.call(ListOffsetsRequest(topics=[asked]), 7).topics
    assert answered.partitions[0].error_code == 0
    for refused in acme.call(ListOffsetsRequest(topics=[asked] * 2), 7).topics:
        assert refused.partitions[0].error_code == ErrorCode.INVALID_REQUEST
