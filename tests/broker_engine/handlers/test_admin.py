"""Topics and configs over the wire: made, changed, described, removed; each change in force when it is answered."""

from __future__ import annotations

from typing import Any
from uuid import UUID, uuid4

import pytest

from broker_engine.wire.messages.alter_configs import AlterableConfig as ReplacedConfig
from broker_engine.wire.messages.alter_configs import AlterConfigsRequest
from broker_engine.wire.messages.alter_configs import AlterConfigsResource as ReplacedResource
from broker_engine.wire.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from broker_engine.wire.messages.create_topics import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest
from broker_engine.wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from broker_engine.wire.messages.describe_cluster import DescribeClusterRequest
from broker_engine.wire.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from broker_engine.wire.messages.describe_topic_partitions import DescribeTopicPartitionsRequest, TopicRequest
from broker_engine.wire.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from broker_engine.wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from tests.broker_engine.broker_process import BrokerProcess
from tests.broker_engine.handlers.calls import batch_of, create, describe, new_name, produce, topic_id_of
from tests.broker_engine.raw_client import RawClient

TOPIC, BROKER = 2, 4
SET, DELETE = 0, 1


def create_one(client: RawClient, topic: CreatableTopic, *, validate_only: bool = False) -> Any:
    (result,) = client.call(CreateTopicsRequest(topics=[topic], validate_only=validate_only), 7).topics
    return result


def alter(client: RawClient, topic: str, **configs: str | None) -> int:
    changes = [
        AlterableConfig(name=name.replace("_", "."), config_operation=DELETE if value is None else SET, value=value)
        for name, value in configs.items()
    ]
    resource = AlterConfigsResource(resource_type=TOPIC, resource_name=topic, configs=changes)
    return int(client.call(IncrementalAlterConfigsRequest(resources=[resource]), 1).responses[0].error_code)


def config_of(client: RawClient, topic: str, name: str) -> Any:
    resource = DescribeConfigsResource(resource_type=TOPIC, resource_name=topic, configuration_keys=[name])
    request = DescribeConfigsRequest(resources=[resource], include_synonyms=True, include_documentation=True)
    (config,) = client.call(request, 4).results[0].configs
    return config


def test_a_created_topic_says_what_it_got(root: RawClient) -> None:
    name = new_name()
    topic = CreatableTopic(
        name=name,
        num_partitions=3,
        replication_factor=1,
        configs=[CreatableTopicConfig(name="retention.ms", value="1000")],
    )
    result = create_one(root, topic)
    assert (result.error_code, result.num_partitions, result.replication_factor) == (0, 3, 1)
    assert result.topic_id == topic_id_of(root, name) != UUID(int=0)
    assert {config.name: config.value for config in result.configs}["retention.ms"] == "1000"


def test_a_dry_run_changes_nothing(root: RawClient) -> None:
    name = new_name()
    result = create_one(root, CreatableTopic(name=name, num_partitions=2, replication_factor=1), validate_only=True)
    assert (result.error_code, result.num_partitions) == (0, 2)
    assert describe(root, name).error_code == 3


@pytest.mark.parametrize(
    ("topic", "code"),
    [
        (CreatableTopic(name="", num_partitions=1, replication_factor=1), 17),
        (CreatableTopic(name="..", num_partitions=1, replication_factor=1), 17),
        (CreatableTopic(name="a b", num_partitions=1, replication_factor=1), 17),
        (CreatableTopic(name="x" * 250, num_partitions=1, replication_factor=1), 17),
        (CreatableTopic(name="ok", num_partitions=0, replication_factor=1), 37),
        (CreatableTopic(name="ok", num_partitions=10**9, replication_factor=1), 37),
        (CreatableTopic(name="ok", num_partitions=1, replication_factor=99), 38),
        (
            CreatableTopic(
                name="ok",
                num_partitions=1,
                replication_factor=1,
                configs=[CreatableTopicConfig(name="no.such.config", value="1")],
            ),
            40,
        ),
    ],
)
def test_a_bad_topic_is_refused_by_name(root: RawClient, topic: CreatableTopic, code: int) -> None:
    result = create_one(root, topic)
    assert result.error_code == code
    assert result.error_message


def test_a_name_is_taken_once(root: RawClient) -> None:
    name = create(root)
    assert create_one(root, CreatableTopic(name=name, num_partitions=1, replication_factor=1)).error_code == 36


def test_topics_are_deleted_by_name_and_by_id(root: RawClient) -> None:
    by_name, by_id = create(root), create(root)
    topics = [
        DeleteTopicState(name=by_name),
        DeleteTopicState(name=None, topic_id=topic_id_of(root, by_id)),
        DeleteTopicState(name=new_name("absent")),
        DeleteTopicState(name=None, topic_id=uuid4()),
    ]
    responses = root.call(DeleteTopicsRequest(topics=topics), 6).responses
    assert [response.error_code for response in responses] == [0, 0, 3, 100]
    assert [describe(root, name).error_code for name in (by_name, by_id)] == [3, 3]


def test_partitions_can_be_added_but_not_taken(root: RawClient) -> None:
    topic = create(root)
    wanted = [CreatePartitionsTopic(name=topic, count=3, assignments=None)]
    assert root.call(CreatePartitionsRequest(topics=wanted), 3).results[0].error_code == 0
    assert len(describe(root, topic).partitions) == 3
    assert produce(root, topic, batch_of(b"x"), partition=2).error_code == 0
    fewer = [CreatePartitionsTopic(name=topic, count=2, assignments=None)]
    assert root.call(CreatePartitionsRequest(topics=fewer), 3).results[0].error_code == 37


def test_a_changed_config_is_in_force_when_it_is_answered(root: RawClient) -> None:
    topic = create(root)
    assert produce(root, topic, batch_of(b"x" * 2000)).error_code == 0
    assert alter(root, topic, max_message_bytes="1000") == 0
    assert produce(root, topic, batch_of(b"x" * 2000)).error_code == 10
    assert alter(root, topic, max_message_bytes=None) == 0
    assert produce(root, topic, batch_of(b"x" * 2000)).error_code == 0
    assert alter(root, topic, no_such_config="1") == 40
    assert alter(root, new_name("absent"), retention_ms="1") == 3


def test_a_config_shows_its_value_and_where_it_comes_from(root: RawClient) -> None:
    topic = create(root)
    default = config_of(root, topic, "retention.ms")
    assert (default.value, default.config_source) == ("604800000", 5)
    alter(root, topic, retention_ms="5000")
    changed = config_of(root, topic, "retention.ms")
    assert (changed.value, changed.config_source) == ("5000", 1)
    assert changed.documentation
    assert changed.synonyms[0].name == "retention.ms"


def test_the_old_way_of_altering_replaces_everything(root: RawClient) -> None:
    topic = create(root, retention_ms="5000")
    resource = ReplacedResource(
        resource_type=TOPIC, resource_name=topic, configs=[ReplacedConfig(name="max.message.bytes", value="1234")]
    )
    assert root.call(AlterConfigsRequest(resources=[resource]), 2).responses[0].error_code == 0
    assert config_of(root, topic, "max.message.bytes").value == "1234"
    assert config_of(root, topic, "retention.ms").value == "604800000"


@pytest.mark.parametrize(
    ("resource_type", "name", "code"), [(TOPIC, "absent", 3), (TOPIC, "a b", 17), (BROKER, "99", 42), (77, "x", 42)]
)
def test_what_cannot_be_described_says_why(root: RawClient, resource_type: int, name: str, code: int) -> None:
    resource = DescribeConfigsResource(resource_type=resource_type, resource_name=name, configuration_keys=None)
    assert root.call(DescribeConfigsRequest(resources=[resource]), 4).results[0].error_code == code


def test_the_broker_describes_itself(root: RawClient) -> None:
    resource = DescribeConfigsResource(resource_type=BROKER, resource_name="1", configuration_keys=None)
    configs = root.call(DescribeConfigsRequest(resources=[resource]), 4).results[0].configs
    assert {"node.id", "log.segment.bytes", "ack.durability"} <= {config.name for config in configs}


def test_describing_in_pages_covers_every_partition_once(root: RawClient) -> None:
    topics = [create(root, partitions=3), create(root, partitions=2)]
    seen: list[tuple[str, int]] = []
    cursor = None
    while True:
        request = DescribeTopicPartitionsRequest(
            topics=[TopicRequest(name=name) for name in topics], response_partition_limit=2, cursor=cursor
        )
        response = root.call(request, 0)
        seen += [(topic.name, each.partition_index) for topic in response.topics for each in topic.partitions]
        cursor = response.next_cursor
        if cursor is None:
            break
    assert sorted(seen) == sorted(
        [(topics[0], index) for index in range(3)] + [(topics[1], index) for index in range(2)]
    )
    assert len(seen) == 5


def test_first_use_creates_a_topic_and_the_client_asks_again(root: RawClient) -> None:
    name = new_name("first-use")
    asked = MetadataRequest(topics=[MetadataRequestTopic(name=name)])
    assert root.call(asked, 12).topics[0].error_code == 3
    for _ in range(1000):
        topic = root.call(asked, 12).topics[0]
        if topic.error_code == 0:
            break
    assert len(topic.partitions) == 1


def test_metadata_by_version(root: RawClient) -> None:
    topic = create(root)
    assert topic in [each.name for each in root.call(MetadataRequest(topics=[]), 0).topics]
    assert root.call(MetadataRequest(topics=[]), 1).topics == []
    assert topic in [each.name for each in root.call(MetadataRequest(topics=None), 1).topics]
    by_id = MetadataRequest(topics=[MetadataRequestTopic(topic_id=topic_id_of(root, topic), name="")])
    assert root.call(by_id, 10).topics[0].error_code == 42


def test_the_cluster_has_one_broker_at_the_callers_address(broker: BrokerProcess, root: RawClient) -> None:
    (node,) = root.call(DescribeClusterRequest(), 2).brokers
    assert (node.broker_id, f"{node.host}:{node.port}") == (1, broker.address())
    assert root.call(DescribeClusterRequest(endpoint_type=2), 1).error_code == 114
