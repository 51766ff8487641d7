"""The consumer protocol over the wire: what is refused and how, who sees which group, migration both ways, configs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from broker_engine.errors import ErrorCode
from broker_engine.groups.consumer_protocol import read_assignment
from broker_engine.wire.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from broker_engine.wire.messages.delete_groups import DeleteGroupsRequest
from broker_engine.wire.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from broker_engine.wire.messages.describe_groups import DescribeGroupsRequest
from broker_engine.wire.messages.heartbeat import HeartbeatRequest
from broker_engine.wire.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from broker_engine.wire.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from broker_engine.wire.messages.leave_group import LeaveGroupRequest, MemberIdentity
from broker_engine.wire.messages.list_config_resources import ListConfigResourcesRequest
from broker_engine.wire.messages.list_groups import ListGroupsRequest
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
from broker_engine.wire.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)
from broker_engine.wire.messages.sync_group import SyncGroupRequest
from tests.broker_engine.broker_process import BrokerProcess
from tests.broker_engine.cluster.cluster_process import wait_for
from tests.broker_engine.handlers.calls import create, new_name
from tests.broker_engine.handlers.consumer_calls import as_owned, beat, describe, held, join_consumer
from tests.broker_engine.handlers.test_groups import join, ready
from tests.broker_engine.raw_client import RawClient

GROUP_RESOURCE = 32


@pytest.fixture
def group(acme: RawClient) -> str:
    return ready(acme, new_name("group"))


def commit(client: RawClient, group: str, topic: str, *, version: int = 9, **fields: Any) -> int:
    asked = OffsetCommitRequestTopic(
        name=topic, partitions=[OffsetCommitRequestPartition(partition_index=0, committed_offset=5)]
    )
    answer = client.call(OffsetCommitRequest(group_id=group, topics=[asked], **fields), version)
    return int(answer.topics[0].partitions[0].error_code)


def fetch_code(client: RawClient, group: str, topic: str, **fields: Any) -> int:
    asked = [OffsetFetchRequestTopics(name=topic, partition_indexes=[0])]
    groups = [OffsetFetchRequestGroup(group_id=group, topics=asked, **fields)]
    return int(client.call(OffsetFetchRequest(groups=groups), 9).groups[0].error_code)


def settled(client: RawClient, group: str, state: str = "Stable") -> None:
    wait_for(f"{group} is {state}", lambda: describe(client, group).group_state == state)


# --- refusals, by protocol.md 2.9


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"member_id": ""}, ErrorCode.INVALID_REQUEST),
        ({"instance_id": ""}, ErrorCode.INVALID_REQUEST),
        ({"rack_id": ""}, ErrorCode.INVALID_REQUEST),
        ({"rebalance_timeout_ms": -1}, ErrorCode.INVALID_REQUEST),
        ({"subscribed_topic_names": None}, ErrorCode.INVALID_REQUEST),
        ({"topic_partitions": None}, ErrorCode.INVALID_REQUEST),
        ({"member_epoch": -2}, ErrorCode.INVALID_REQUEST),
        ({"member_epoch": -3}, ErrorCode.INVALID_REQUEST),
        ({"server_assignor": "sticky"}, ErrorCode.UNSUPPORTED_ASSIGNOR),
        ({"subscribed_topic_regex": "(?=x)"}, ErrorCode.INVALID_REGULAR_EXPRESSION),
        ({"member_epoch": 3}, ErrorCode.GROUP_ID_NOT_FOUND),
        ({"member_epoch": -1}, ErrorCode.GROUP_ID_NOT_FOUND),
    ],
)
def test_a_refused_heartbeat_leaves_no_group(
    acme: RawClient, group: str, fields: dict[str, Any], code: ErrorCode
) -> None:
    given: dict[str, Any] = {
        "member_id": "m",
        "member_epoch": 0,
        "rebalance_timeout_ms": 1_000,
        "subscribed_topic_names": ["x"],
        "topic_partitions": [],
        **fields,
    }
    member, epoch = given.pop("member_id"), given.pop("member_epoch")
    answer = beat(acme, group, member, epoch, **given)
    assert answer.error_code == code
    assert answer.error_message
    assert describe(acme, group).error_code == ErrorCode.GROUP_ID_NOT_FOUND


def test_a_group_without_a_name_is_refused(acme: RawClient, group: str) -> None:
    assert join_consumer(acme, "", "m", "x").error_code == ErrorCode.INVALID_REQUEST
    assert describe(acme, "").error_code == ErrorCode.INVALID_GROUP_ID


def test_version_0_has_the_broker_make_the_id(acme: RawClient, group: str) -> None:
    topic = create(acme)
    answer = join_consumer(acme, group, "", topic, version=0)
    assert (answer.error_code, bool(answer.member_id)) == (0, True)
    assert beat(acme, group, answer.member_id, answer.member_epoch, 0).error_code == 0


# --- a life in a group


def test_partitions_move_when_their_owner_reports_them_gone(acme: RawClient, group: str) -> None:
    topic = create(acme, partitions=4)
    first = join_consumer(acme, group, "a", topic)
    assert (first.error_code, first.member_epoch, held(first)) == (0, 2, [0, 1, 2, 3])
    assert first.heartbeat_interval_ms == 5_000
    second = join_consumer(acme, group, "b", topic)
    assert (second.member_epoch, held(second)) == (2, [])
    settled(acme, group, "Reconciling")
    told = beat(acme, group, "a", 2)
    assert (told.member_epoch, held(told)) == (2, [0, 1])
    assert beat(acme, group, "b", 2).member_epoch == 3
    assert beat(acme, group, "a", 2, topic_partitions=as_owned(told)).member_epoch == 3
    given = beat(acme, group, "b", 3)
    assert held(given) == [2, 3]
    settled(acme, group)
    described = describe(acme, group)
    assert (described.group_epoch, described.assignment_epoch, described.assignor_name) == (3, 3, "uniform")
    members = {member.member_id: member for member in described.members}
    assert [members[name].member_type for name in "ab"] == [1, 1]
    assert members["a"].assignment.topic_partitions[0].topic_name == topic
    assert members["a"].assignment == members["a"].target_assignment
    assert list(members["b"].subscribed_topic_names) == [topic]
    assert beat(acme, group, "b", 9).error_code == ErrorCode.FENCED_MEMBER_EPOCH
    assert beat(acme, group, "x", 3).error_code == ErrorCode.UNKNOWN_MEMBER_ID
    assert beat(acme, group, "b", -1).member_epoch == -1
    assert beat(acme, group, "a", -1).member_epoch == -1
    assert describe(acme, group).group_state == "Empty"


def test_new_partitions_reach_the_members(acme: RawClient, group: str) -> None:
    topic = create(acme)
    epoch = join_consumer(acme, group, "a", topic).member_epoch
    asked = [CreatePartitionsTopic(name=topic, count=3, assignments=None)]
    assert acme.call(CreatePartitionsRequest(topics=asked, timeout_ms=5_000), 3).results[0].error_code == 0

    def has_three() -> bool:
        nonlocal epoch
        answer = beat(acme, group, "a", epoch)
        epoch = answer.member_epoch
        return held(answer) == [0, 1, 2]

    wait_for("three partitions", has_three)


def test_a_regular_expression_sees_only_the_tenants_own_topics(
    acme: RawClient, globex: RawClient, root: RawClient, group: str
) -> None:
    prefix = new_name("regex")
    mine, _theirs = create(acme, f"{prefix}-mine"), create(globex, f"{prefix}-theirs")
    answer = join_consumer(acme, group, "a", subscribed_topic_regex=f".*{prefix}.*")
    assert held(answer) == [0]
    (member,) = describe(acme, group).members
    assert [topic.topic_name for topic in member.assignment.topic_partitions] == [mine]
    assert member.subscribed_topic_regex == f".*{prefix}.*"
    assert describe(globex, group).error_code == ErrorCode.GROUP_ID_NOT_FOUND
    assert describe(root, f"acme/{group}").group_state == "Stable"


def test_a_static_member_comes_back_and_its_old_id_is_fenced(acme: RawClient, group: str) -> None:
    topic = create(acme, partitions=2)
    epoch = join_consumer(acme, group, "a", topic, instance_id="one").member_epoch
    assert join_consumer(acme, group, "b", topic, instance_id="one").error_code == ErrorCode.UNRELEASED_INSTANCE_ID
    assert beat(acme, group, "a", -2, instance_id="one").member_epoch == -2
    back = join_consumer(acme, group, "b", topic, instance_id="one")
    assert (back.error_code, back.member_epoch, held(back)) == (0, epoch, [0, 1])
    assert beat(acme, group, "a", epoch, instance_id="one").error_code == ErrorCode.FENCED_INSTANCE_ID


# --- offsets


def test_offsets_are_taken_from_members_in_their_epoch(acme: RawClient, group: str) -> None:
    topic = create(acme)
    other = create(acme)
    assert commit(acme, group, topic, generation_id_or_member_epoch=3) == ErrorCode.GROUP_ID_NOT_FOUND
    assert commit(acme, group, topic, version=8, generation_id_or_member_epoch=3) == ErrorCode.ILLEGAL_GENERATION
    epoch = join_consumer(acme, group, "a", topic).member_epoch
    by_member = {"member_id": "a", "generation_id_or_member_epoch": epoch}
    assert commit(acme, group, topic, **by_member) == 0
    assert commit(acme, group, topic) == ErrorCode.UNKNOWN_MEMBER_ID, "a simple commit while there are members"
    assert commit(acme, group, topic, version=8, **by_member) == ErrorCode.UNSUPPORTED_VERSION
    above = {**by_member, "generation_id_or_member_epoch": epoch + 1}
    assert commit(acme, group, topic, **above) == ErrorCode.STALE_MEMBER_EPOCH
    fetch = {"member_id": "a", "member_epoch": epoch}
    assert fetch_code(acme, group, topic, **fetch) == 0
    assert fetch_code(acme, group, topic) == 0, "whoever is no member may look"
    assert fetch_code(acme, group, topic, member_id="a", member_epoch=epoch + 1) == ErrorCode.STALE_MEMBER_EPOCH
    assert fetch_code(acme, group, topic, member_id="x", member_epoch=epoch) == ErrorCode.UNKNOWN_MEMBER_ID

    grown = beat(acme, group, "a", epoch, subscribed_topic_names=[topic, other])
    wait_for("the next epoch", lambda: beat(acme, group, "a", epoch, topic_partitions=[]).member_epoch > epoch)
    assert grown.error_code == 0
    assert commit(acme, group, topic, **by_member) == 0, "it has been the member's since that epoch"
    assert commit(acme, group, other, **by_member) == ErrorCode.STALE_MEMBER_EPOCH, "that one came later"


def test_offsets_of_topics_that_a_living_group_reads_are_not_deleted(acme: RawClient, group: str) -> None:
    topic, other = create(acme), create(acme)
    epoch = join_consumer(acme, group, "a", topic).member_epoch
    by_member = {"member_id": "a", "generation_id_or_member_epoch": epoch}
    assert commit(acme, group, topic, **by_member) == commit(acme, group, other, **by_member) == 0
    asked = [
        OffsetDeleteRequestTopic(name=name, partitions=[OffsetDeleteRequestPartition(partition_index=0)])
        for name in (topic, other)
    ]
    answer = acme.call(OffsetDeleteRequest(group_id=group, topics=asked), 0)
    codes = [each.partitions[0].error_code for each in answer.topics]
    assert codes == [ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC, 0]


def test_groups_are_listed_by_type_described_by_their_own_api_and_deleted_when_empty(
    acme: RawClient, group: str
) -> None:
    topic = create(acme)
    join_consumer(acme, group, "a", topic)
    found = [each for each in acme.call(ListGroupsRequest(), 5).groups if each.group_id == group]
    assert [(each.group_type, each.group_state, each.protocol_type) for each in found] == [
        ("consumer", "Stable", "consumer")
    ]
    of_type = acme.call(ListGroupsRequest(types_filter=["Consumer"], states_filter=["stable"]), 5).groups
    assert group in [each.group_id for each in of_type]
    old = acme.call(DescribeGroupsRequest(groups=[group]), 5).groups[0]
    assert (old.error_code, old.group_state) == (0, "Dead")
    new = acme.call(DescribeGroupsRequest(groups=[group]), 6).groups[0]
    assert (new.error_code, new.group_state) == (ErrorCode.GROUP_ID_NOT_FOUND, "Dead")
    delete = DeleteGroupsRequest(groups_names=[group])
    assert acme.call(delete, 2).results[0].error_code == ErrorCode.NON_EMPTY_GROUP
    beat(acme, group, "a", -1)
    assert acme.call(delete, 2).results[0].error_code == 0
    assert describe(acme, group).error_code == ErrorCode.GROUP_ID_NOT_FOUND


# --- migration


def subscription(*topics: str, owned: bytes = b"\0\0\0\0") -> list[JoinGroupRequestProtocol]:
    names = b"".join(len(name).to_bytes(2, "big") + name.encode() for name in topics)
    metadata = b"\0\1" + len(topics).to_bytes(4, "big") + names + b"\xff\xff\xff\xff" + owned
    return [JoinGroupRequestProtocol(name="range", metadata=metadata)]


def join_classic(client: RawClient, group: str, member: str, topic: str) -> Any:
    joined = join(client, group, member_id=member, protocols=subscription(topic))
    if joined.error_code == ErrorCode.MEMBER_ID_REQUIRED:
        return join_classic(client, group, joined.member_id, topic)
    return joined


def sync_classic(client: RawClient, group: str, joined: Any) -> Any:
    request = SyncGroupRequest(
        group_id=group,
        generation_id=joined.generation_id,
        member_id=joined.member_id,
        protocol_type="consumer",
        protocol_name="range",
    )
    return client.call(request, 5)


def heartbeat_code(client: RawClient, group: str, joined: Any) -> int:
    request = HeartbeatRequest(group_id=group, generation_id=joined.generation_id, member_id=joined.member_id)
    return int(client.call(request, 4).error_code)


def test_a_classic_member_joins_a_group_of_the_consumer_protocol_and_keeps_it_when_the_other_goes(
    acme: RawClient, group: str
) -> None:
    topic = create(acme, partitions=2)
    epoch = join_consumer(acme, group, "new", topic).member_epoch
    joined = join_classic(acme, group, "", topic)
    assert (joined.error_code, joined.leader, joined.protocol_name) == (0, "", "range")
    told = []

    def moved() -> bool:
        nonlocal joined, epoch
        answer = beat(acme, group, "new", epoch, topic_partitions=told[-1] if told else None)
        epoch = answer.member_epoch
        if answer.assignment is not None:
            told.append(as_owned(answer))
        if heartbeat_code(acme, group, joined) == ErrorCode.REBALANCE_IN_PROGRESS:
            joined = join_classic(acme, group, joined.member_id, topic)
        synced = sync_classic(acme, group, joined)
        return synced.error_code == 0 and read_assignment(bytes(synced.assignment)) == {topic: (1,)}

    wait_for("one partition each", moved)
    settled(acme, group)
    types = {member.member_id: member.member_type for member in describe(acme, group).members}
    assert types == {"new": 1, joined.member_id: 0}
    assert beat(acme, group, "new", -1).error_code == 0
    described = acme.call(DescribeGroupsRequest(groups=[group]), 6).groups[0]
    assert described.group_state == "PreparingRebalance", "the group is a classic one again"
    again = join_classic(acme, group, joined.member_id, topic)
    assert (again.error_code, again.leader) == (0, joined.member_id)
    assert again.generation_id > joined.generation_id
    leave = LeaveGroupRequest(group_id=group, members=[MemberIdentity(member_id=joined.member_id)])
    assert acme.call(leave, 5).members[0].error_code == 0


def sync_code(client: RawClient, group: str, joined: Any) -> int:
    return int(sync_classic(client, group, joined).error_code)


@pytest.mark.parametrize("ask", [heartbeat_code, sync_code])
def test_a_classic_member_that_is_called_and_does_not_come_is_out_after_its_rebalance_time(
    acme: RawClient, group: str, ask: Callable[[RawClient, str, Any], int]
) -> None:
    topic = create(acme, partitions=2)
    join_consumer(acme, group, "new", topic)
    member = join_classic(acme, group, "", topic).member_id
    wait_for("a target for both", lambda: is_assigned(acme, group))
    brief = {"session_timeout_ms": 600_000, "rebalance_timeout_ms": 500}
    joined = join(acme, group, member_id=member, protocols=subscription(topic), **brief)
    assert sync_code(acme, group, joined) == 0
    join_consumer(acme, group, "newer", topic)
    wait_for("a target for all three", lambda: is_assigned(acme, group))
    assert ask(acme, group, joined) == ErrorCode.REBALANCE_IN_PROGRESS
    wait_for("it is out", lambda: member not in {each.member_id for each in describe(acme, group).members})


def is_assigned(client: RawClient, group: str) -> bool:
    described = describe(client, group)
    return bool(described.group_epoch == described.assignment_epoch)


def test_an_empty_group_is_whatever_its_next_member_speaks(acme: RawClient, group: str) -> None:
    topic = create(acme)
    assert commit(acme, group, topic) == 0
    assert join_consumer(acme, group, "new", topic).error_code == 0
    beat(acme, group, "new", -1)
    joined = join_classic(acme, group, "", topic)
    assert (joined.error_code, joined.leader) == (0, joined.member_id)
    assert describe(acme, group).error_code == ErrorCode.GROUP_ID_NOT_FOUND
    leave = LeaveGroupRequest(group_id=group, members=[MemberIdentity(member_id=joined.member_id)])
    assert acme.call(leave, 5).error_code == 0
    wait_for("the classic group is empty", lambda: join_consumer(acme, group, "new", topic).error_code == 0)
    assert describe(acme, group).group_state in ("Stable", "Assigning")


def test_a_consumer_that_comes_while_an_empty_group_turns_classic_is_not_lost(
    broker: BrokerProcess, acme: RawClient, group: str
) -> None:
    topic = create(acme)
    asked = JoinGroupRequest(
        group_id=group,
        session_timeout_ms=10_000,
        rebalance_timeout_ms=10_000,
        protocol_type="consumer",
        protocols=subscription(topic),
    )
    with RawClient(broker.address("acme")) as classic:
        for number in range(10):
            consumer = f"consumer-{number}"
            assert join_consumer(acme, group, consumer, topic).error_code == 0
            beat(acme, group, consumer, -1)
            classic.send_request(asked, 9)
            came = join_consumer(acme, group, consumer, topic)
            assert classic.receive(asked, 9).error_code == ErrorCode.MEMBER_ID_REQUIRED
            assert beat(acme, group, consumer, came.member_epoch).error_code == 0
            assert beat(acme, group, consumer, -1).error_code == 0


# --- group configs


def alter(client: RawClient, group: str, name: str, value: str | None, operation: int = 0) -> int:
    configs = [AlterableConfig(name=name, config_operation=operation, value=value)]
    resource = AlterConfigsResource(resource_type=GROUP_RESOURCE, resource_name=group, configs=configs)
    return int(client.call(IncrementalAlterConfigsRequest(resources=[resource]), 1).responses[0].error_code)


def configs(client: RawClient, group: str) -> dict[str, tuple[str, int]]:
    asked = DescribeConfigsResource(resource_type=GROUP_RESOURCE, resource_name=group)
    (result,) = client.call(DescribeConfigsRequest(resources=[asked]), 4).results
    assert result.error_code == 0
    return {row.name: (row.value, row.config_source) for row in result.configs}


def test_a_groups_own_configs_are_in_force_within_the_brokers_bounds(
    acme: RawClient, globex: RawClient, group: str
) -> None:
    assert len(configs(acme, group)) == 17
    assert configs(acme, group)["consumer.heartbeat.interval.ms"] == ("5000", 5)
    assert alter(acme, group, "consumer.heartbeat.interval.ms", "7000") == 0
    assert configs(acme, group)["consumer.heartbeat.interval.ms"] == ("7000", 8)
    assert configs(globex, group)["consumer.heartbeat.interval.ms"] == ("5000", 5)
    joined = join_consumer(acme, group, "a", create(acme))
    assert joined.heartbeat_interval_ms == 7_000
    for name, value in (
        ("consumer.heartbeat.interval.ms", "4999"),
        ("consumer.session.timeout.ms", "60001"),
        ("consumer.session.timeout.ms", "soon"),
        ("no.such.config", "1"),
    ):
        assert alter(acme, group, name, value) == ErrorCode.INVALID_CONFIG
    assert alter(acme, "", "consumer.session.timeout.ms", "50000") == ErrorCode.INVALID_REQUEST
    listed = acme.call(ListConfigResourcesRequest(resource_types=[GROUP_RESOURCE]), 1).config_resources
    assert group in [each.resource_name for each in listed]
    others = globex.call(ListConfigResourcesRequest(resource_types=[GROUP_RESOURCE]), 1).config_resources
    assert group not in [each.resource_name for each in others]
    assert alter(acme, group, "consumer.heartbeat.interval.ms", None, operation=1) == 0
    assert configs(acme, group)["consumer.heartbeat.interval.ms"] == ("5000", 5)
    assert beat(acme, group, "a", joined.member_epoch).heartbeat_interval_ms == 5_000, "a living group hears of it"
