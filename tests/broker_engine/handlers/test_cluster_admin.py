"""Elections, moves, log directories and brokers, as admin clients ask for them; tenants reach their own topics only.

On one broker: what several of them do is in tests/compatibility/test_kafka_tools_cluster.py and in the simulator.
"""

from __future__ import annotations

from typing import Any

from broker_engine.wire.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from broker_engine.wire.messages.describe_cluster import DescribeClusterRequest
from broker_engine.wire.messages.describe_log_dirs import DescribableLogDirTopic, DescribeLogDirsRequest
from broker_engine.wire.messages.elect_leaders import ElectLeadersRequest, ElectLeadersTopicPartitions
from broker_engine.wire.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsTopics,
)
from broker_engine.wire.messages.unregister_broker import UnregisterBrokerRequest
from tests.broker_engine.broker_process import BrokerProcess
from tests.broker_engine.handlers.calls import batch_of, create, describe, new_name, produce
from tests.broker_engine.raw_client import RawClient

NODE = 1


def elect(client: RawClient, *topics: str, election: int = 0) -> dict[str, list[int]]:
    asked = [ElectLeadersTopicPartitions(topic=topic, partitions=[0]) for topic in topics]
    response = client.call(ElectLeadersRequest(election_type=election, topic_partitions=asked), 2)
    assert response.error_code == 0
    return {row.topic: [one.error_code for one in row.partition_result] for row in response.replica_election_results}


def reassign(client: RawClient, topic: str, replicas: list[int] | None) -> Any:
    partition = ReassignablePartition(partition_index=0, replicas=replicas)
    request = AlterPartitionReassignmentsRequest(topics=[ReassignableTopic(name=topic, partitions=[partition])])
    (answer,) = client.call(request, 1).responses
    return answer.partitions[0]


def log_dirs(client: RawClient, topics: list[str] | None = None) -> Any:
    asked = None if topics is None else [DescribableLogDirTopic(topic=name, partitions=[0]) for name in topics]
    (result,) = client.call(DescribeLogDirsRequest(topics=asked), 4).results
    return result


# --- elections


def test_a_partition_that_is_led_needs_no_election(root: RawClient) -> None:
    topic = create(root)
    assert elect(root, topic, "absent") == {topic: [84], "absent": [3]}
    assert elect(root, topic, election=1) == {topic: [84]}


def test_asked_for_all_only_what_was_done_is_answered(root: RawClient) -> None:
    create(root)
    response = root.call(ElectLeadersRequest(topic_partitions=None), 2)
    assert (response.error_code, list(response.replica_election_results)) == (0, [])


def test_an_unknown_kind_of_election_is_refused(root: RawClient) -> None:
    asked = [ElectLeadersTopicPartitions(topic="t", partitions=[0])]
    response = root.call(ElectLeadersRequest(election_type=7, topic_partitions=asked), 2)
    assert response.error_code == 42


def test_a_tenants_elections_are_about_its_own_topics(acme: RawClient, globex: RawClient) -> None:
    name = create(globex)
    assert elect(acme, name, f"globex/{name}") == {name: [3], f"globex/{name}": [3]}
    assert elect(globex, name) == {name: [84]}


# --- moves


def test_a_move_to_nobody_or_to_an_unknown_broker_is_39(root: RawClient) -> None:
    topic = create(root)
    assert reassign(root, topic, []).error_code == 39
    assert reassign(root, topic, [NODE, NODE]).error_code == 39
    unknown = reassign(root, topic, [NODE, 99])
    assert unknown.error_code == 39
    assert "99" in unknown.error_message
    assert reassign(root, topic, None).error_code == 85
    assert reassign(root, "absent", [NODE]).error_code == 3


def test_a_move_to_where_it_is_changes_nothing(root: RawClient) -> None:
    topic = create(root)
    before = describe(root, topic).partitions[0]
    assert reassign(root, topic, [NODE]).error_code == 0
    assert describe(root, topic).partitions[0] == before
    assert list(root.call(ListPartitionReassignmentsRequest(topics=None), 0).topics) == []


def test_what_is_not_there_is_left_out_of_the_moves_under_way(root: RawClient) -> None:
    asked = [ListPartitionReassignmentsTopics(name="absent", partition_indexes=[0])]
    response = root.call(ListPartitionReassignmentsRequest(topics=asked), 0)
    assert (response.error_code, list(response.topics)) == (0, [])


def test_where_replicas_stand_and_what_may_be_lost_is_not_a_tenants_to_decide(acme: RawClient) -> None:
    name = create(acme, new_name("kept"))
    partition = ReassignablePartition(partition_index=0, replicas=[NODE])
    request = AlterPartitionReassignmentsRequest(topics=[ReassignableTopic(name=name, partitions=[partition])])
    assert acme.call(request, 1).error_code == 31
    asked = [ElectLeadersTopicPartitions(topic=name, partitions=[0])]
    assert acme.call(ElectLeadersRequest(election_type=1, topic_partitions=asked), 2).error_code == 31


# --- brokers


def test_a_broker_that_holds_replicas_is_not_forgotten(root: RawClient) -> None:
    create(root)
    refused = root.call(UnregisterBrokerRequest(broker_id=NODE), 0)
    assert refused.error_code == 42
    assert "replica" in refused.error_message
    assert root.call(UnregisterBrokerRequest(broker_id=77), 0).error_code == 102


def test_brokers_are_not_a_tenants_to_forget(acme: RawClient) -> None:
    assert acme.call(UnregisterBrokerRequest(broker_id=77), 0).error_code == 31


def test_the_cluster_shows_its_controller_and_who_is_fenced(root: RawClient, acme: RawClient) -> None:
    for client in (root, acme):
        response = client.call(DescribeClusterRequest(include_fenced_brokers=True), 2)
        assert response.controller_id == NODE
        assert [(broker.broker_id, broker.is_fenced) for broker in response.brokers] == [(NODE, False)]


def test_a_healthy_partition_has_no_offline_replica(root: RawClient) -> None:
    assert describe(root, create(root)).partitions[0].offline_replicas == []


# --- log directories


def test_log_directories_tell_sizes_of_what_lies_there(root: RawClient, broker: BrokerProcess) -> None:
    topic = create(root)
    batch = batch_of(b"x" * 1000)
    produce(root, topic, batch)
    result = log_dirs(root, [topic])
    ((row,),) = (one.partitions for one in result.topics)
    assert (row.partition_size, row.offset_lag) == (len(batch), 0)
    assert result.log_dir == str(broker.data_dir)
    assert 0 < result.usable_bytes <= result.total_bytes
    assert log_dirs(root, ["absent"]).topics == []


def test_a_tenant_sees_its_own_sizes_and_nothing_of_the_machine(acme: RawClient, globex: RawClient) -> None:
    mine, theirs = create(acme), create(globex)
    result = log_dirs(acme)
    names = {topic.name for topic in result.topics}
    assert mine in names
    assert not names & {theirs, f"globex/{theirs}", "__telemetry"}
    assert (result.log_dir, result.total_bytes, result.usable_bytes) == ("/data", -1, -1)
    assert log_dirs(acme, [theirs, f"globex/{theirs}"]).topics == []
