"""Group APIs over the wire: what is refused and how, and what two tenants see of each other's groups (nothing)."""

from __future__ import annotations

from typing import Any

import pytest

from broker_engine.errors import ErrorCode
from broker_engine.handlers.join_group import PROTOCOLS_MAX
from broker_engine.wire.messages.delete_groups import DeleteGroupsRequest
from broker_engine.wire.messages.delete_topics import DeleteTopicsRequest
from broker_engine.wire.messages.describe_groups import DescribeGroupsRequest
from broker_engine.wire.messages.find_coordinator import FindCoordinatorRequest
from broker_engine.wire.messages.heartbeat import HeartbeatRequest
from broker_engine.wire.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from broker_engine.wire.messages.leave_group import LeaveGroupRequest, MemberIdentity
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
from tests.broker_engine.cluster.cluster_process import wait_for
from tests.broker_engine.handlers.calls import create, new_name
from tests.broker_engine.raw_client import RawClient

PROTOCOLS = [JoinGroupRequestProtocol(name="range", metadata=b"meta")]


def ready(client: RawClient, group: str) -> str:
    """The group, once somebody coordinates it: the first question makes the topic."""

    def is_found() -> bool:
        response = client.call(FindCoordinatorRequest(coordinator_keys=[group]), 4)
        return bool(response.coordinators[0].error_code == 0)

    wait_for(f"a coordinator of {group}", is_found)
    wait_for("the group's shard", lambda: commit(client, group, "no-such-topic", 0) != 14)
    return group


def join(client: RawClient, group: str, version: int = 9, **fields: Any) -> Any:
    given: dict[str, Any] = {
        "session_timeout_ms": 10_000,
        "rebalance_timeout_ms": 10_000,
        "protocol_type": "consumer",
        "protocols": PROTOCOLS,
        **fields,
    }
    return client.call(JoinGroupRequest(group_id=group, **given), version)


def commit(client: RawClient, group: str, topic: str, offset: int, *, partition: int = 0, **fields: Any) -> int:
    asked = OffsetCommitRequestPartition(partition_index=partition, committed_offset=offset, **fields)
    request = OffsetCommitRequest(group_id=group, topics=[OffsetCommitRequestTopic(name=topic, partitions=[asked])])
    return int(client.call(request, 9).topics[0].partitions[0].error_code)


def committed(client: RawClient, group: str, topic: str, partition: int = 0) -> int:
    topics = [OffsetFetchRequestTopics(name=topic, partition_indexes=[partition])]
    response = client.call(OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group_id=group, topics=topics)]), 8)
    return int(response.groups[0].topics[0].partitions[0].committed_offset)


def listed(client: RawClient) -> list[str]:
    return [group.group_id for group in client.call(ListGroupsRequest(), 5).groups]


# --- refusals


def test_a_group_without_a_name_is_refused_where_kafka_refuses_it(acme: RawClient) -> None:
    ready(acme, new_name("group"))
    assert join(acme, "").error_code == ErrorCode.INVALID_GROUP_ID
    assert acme.call(SyncGroupRequest(), 5).error_code == ErrorCode.INVALID_GROUP_ID
    assert acme.call(HeartbeatRequest(), 4).error_code == ErrorCode.INVALID_GROUP_ID
    assert acme.call(LeaveGroupRequest(members=[MemberIdentity()]), 5).error_code == ErrorCode.INVALID_GROUP_ID
    assert acme.call(OffsetDeleteRequest(), 0).error_code == ErrorCode.INVALID_GROUP_ID


def test_a_name_that_does_not_fit_into_a_record_with_its_tenants_is_refused(acme: RawClient) -> None:
    group = ready(acme, new_name("group"))
    longest, too_long = "x" * 32_762, "x" * 32_763
    assert join(acme, longest).error_code == ErrorCode.MEMBER_ID_REQUIRED
    assert join(acme, too_long).error_code == ErrorCode.INVALID_GROUP_ID
    assert commit(acme, too_long, "absent", 1) == ErrorCode.INVALID_GROUP_ID
    asked = [OffsetFetchRequestGroup(group_id=each, topics=None) for each in (group, too_long)]
    answer = acme.call(OffsetFetchRequest(groups=asked), 8)
    assert [each.error_code for each in answer.groups] == [0, ErrorCode.INVALID_GROUP_ID]
    gone = acme.call(DeleteGroupsRequest(groups_names=[too_long]), 2).results[0]
    assert gone.error_code == ErrorCode.INVALID_GROUP_ID
    assert too_long not in listed(acme)


@pytest.mark.parametrize("session_timeout_ms", [0, -1, 5_999, 1_800_001, (1 << 31) - 1])
def test_a_session_outside_of_the_bounds_is_refused(acme: RawClient, session_timeout_ms: int) -> None:
    group = ready(acme, new_name("group"))
    refused = join(acme, group, session_timeout_ms=session_timeout_ms)
    assert refused.error_code == ErrorCode.INVALID_SESSION_TIMEOUT
    assert group not in listed(acme)


def test_a_member_that_names_more_protocols_than_anybody_speaks_is_refused(acme: RawClient) -> None:
    group = ready(acme, new_name("group"))
    protocols = [JoinGroupRequestProtocol(name=f"protocol-{number}") for number in range(PROTOCOLS_MAX + 1)]
    assert join(acme, group, protocols=protocols).error_code == ErrorCode.INVALID_REQUEST
    assert group not in listed(acme)
    assert join(acme, group, protocols=protocols[:-1]).error_code == ErrorCode.MEMBER_ID_REQUIRED


def test_a_newcomer_gets_an_id_and_a_refused_one_leaves_no_group(acme: RawClient) -> None:
    group = ready(acme, new_name("group"))
    assert join(acme, group, protocols=[]).error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    assert join(acme, group, member_id="nobody").error_code == ErrorCode.UNKNOWN_MEMBER_ID
    assert group not in listed(acme)
    for version, no_protocol in ((9, None), (5, "")):
        asked = join(acme, group, version)
        assert (asked.error_code, asked.generation_id) == (ErrorCode.MEMBER_ID_REQUIRED, -1)
        assert (asked.leader, asked.protocol_name) == ("", no_protocol)
        assert asked.member_id


def test_commits_say_for_each_partition_what_is_wrong(acme: RawClient) -> None:
    group, topic = ready(acme, new_name("group")), new_name("topic")
    create(acme, topic)
    assert commit(acme, group, topic, 7) == ErrorCode.NONE
    assert commit(acme, group, topic, 7, partition=9) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert commit(acme, group, "absent", 7) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    long_note = {"committed_metadata": "x" * 4097}
    assert commit(acme, group, topic, 8, **long_note) == ErrorCode.OFFSET_METADATA_TOO_LARGE
    assert committed(acme, group, topic) == 7
    assert committed(acme, group, "absent") == -1
    assert committed(acme, ready(acme, new_name("other")), topic) == -1


def test_a_topic_that_is_made_again_has_no_committed_offset(acme: RawClient) -> None:
    group, topic = ready(acme, new_name("group")), new_name("topic")
    create(acme, topic)
    assert commit(acme, group, topic, 7) == ErrorCode.NONE
    acme.call(DeleteTopicsRequest(topic_names=[topic]), 5)
    create(acme, topic)
    assert committed(acme, group, topic) == -1


def test_a_group_that_is_not_there_is_dead_and_cannot_be_deleted(acme: RawClient) -> None:
    group = ready(acme, new_name("group"))
    old = acme.call(DescribeGroupsRequest(groups=[group]), 5).groups[0]
    assert (old.error_code, old.group_state) == (0, "Dead")
    new = acme.call(DescribeGroupsRequest(groups=[group]), 6).groups[0]
    assert (new.error_code, new.group_state) == (ErrorCode.GROUP_ID_NOT_FOUND, "Dead")
    gone = acme.call(DeleteGroupsRequest(groups_names=[group]), 2).results[0]
    assert gone.error_code == ErrorCode.GROUP_ID_NOT_FOUND


def test_offsets_are_deleted_one_by_one_and_with_their_group(acme: RawClient) -> None:
    group, topic = ready(acme, new_name("group")), new_name("topic")
    create(acme, topic, partitions=2)
    for partition in range(2):
        commit(acme, group, topic, 5, partition=partition)
    asked = OffsetDeleteRequestTopic(name=topic, partitions=[OffsetDeleteRequestPartition(partition_index=0)])
    answer = acme.call(OffsetDeleteRequest(group_id=group, topics=[asked]), 0)
    assert (answer.error_code, answer.topics[0].partitions[0].error_code) == (0, 0)
    assert [committed(acme, group, topic, partition) for partition in range(2)] == [-1, 5]
    assert acme.call(DeleteGroupsRequest(groups_names=[group]), 2).results[0].error_code == 0
    assert group not in listed(acme)


# --- two tenants


def test_one_group_name_is_two_groups(acme: RawClient, globex: RawClient, root: RawClient) -> None:
    group, topic = ready(acme, new_name("group")), new_name("topic")
    ready(globex, group)
    for client, offset in ((acme, 3), (globex, 9)):
        create(client, topic)
        assert commit(client, group, topic, offset) == ErrorCode.NONE
    assert (committed(acme, group, topic), committed(globex, group, topic)) == (3, 9)
    assert acme.call(DeleteGroupsRequest(groups_names=[group]), 2).results[0].error_code == 0
    assert group not in listed(acme)
    assert group in listed(globex)
    assert f"globex/{group}" in listed(root)
