"""Offsets in transactions over the wire: pending until the marker, gone with an abort, and refused by Kafka's codes."""

from __future__ import annotations

import pytest

from broker_engine.errors import ErrorCode
from broker_engine.wire.messages.delete_groups import DeleteGroupsRequest
from broker_engine.wire.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)
from tests.broker_engine.cluster.cluster_process import wait_for
from tests.broker_engine.handlers.calls import create, new_name
from tests.broker_engine.handlers.consumer_calls import join_consumer
from tests.broker_engine.handlers.test_groups import commit, committed, join, ready
from tests.broker_engine.handlers.txn_producer import TxnProducer
from tests.broker_engine.raw_client import RawClient


@pytest.fixture
def group(root: RawClient) -> str:
    return ready(root, new_name("group"))


@pytest.fixture
def producer(root: RawClient) -> TxnProducer:
    return TxnProducer(root).init()


def stable(client: RawClient, group: str, topic: str) -> int:
    """The offset, or minus the code."""
    topics = [OffsetFetchRequestTopics(name=topic, partition_indexes=[0])]
    asked = OffsetFetchRequestGroup(group_id=group, topics=topics)
    response = client.call(OffsetFetchRequest(groups=[asked], require_stable=True), 8)
    row = response.groups[0].topics[0].partitions[0]
    return -int(row.error_code) if row.error_code else int(row.committed_offset)


def test_an_offset_is_in_force_when_its_transaction_commits(producer: TxnProducer, group: str) -> None:
    client, topic = producer.client, create(producer.client)
    assert commit(client, group, topic, 3) == 0
    assert producer.add_group(group) == 0
    assert producer.commit_offset(group, topic, 7) == 0
    assert committed(client, group, topic) == 3
    assert stable(client, group, topic) == -ErrorCode.UNSTABLE_OFFSET_COMMIT
    assert producer.end().error_code == 0
    wait_for("the marker", lambda: committed(client, group, topic) == 7)
    assert stable(client, group, topic) == 7


def test_an_aborted_one_leaves_the_old_offset(producer: TxnProducer, group: str) -> None:
    client, topic = producer.client, create(producer.client)
    assert commit(client, group, topic, 3) == 0
    producer.add_group(group)
    assert producer.commit_offset(group, topic, 7) == 0
    assert producer.end(is_commit=False).error_code == 0
    wait_for("the marker", lambda: stable(client, group, topic) == 3)


@pytest.mark.parametrize(
    ("version", "code"), [(0, ErrorCode.INVALID_TXN_STATE), (3, ErrorCode.INVALID_TXN_STATE), (4, 120)]
)
def test_a_group_that_was_not_added_is_refused(producer: TxnProducer, group: str, version: int, code: int) -> None:
    topic = create(producer.client)
    assert producer.commit_offset(group, topic, 7, version=version) == code
    assert committed(producer.client, group, topic) == -1


def test_version_5_adds_the_group_itself(producer: TxnProducer, group: str) -> None:
    client, topic = producer.client, create(producer.client)
    assert producer.commit_offset(group, topic, 7, version=5) == 0
    assert producer.end(version=5).error_code == 0
    wait_for("the marker", lambda: committed(client, group, topic) == 7)


def test_an_old_epoch_and_an_unknown_producer_are_refused(root: RawClient, producer: TxnProducer, group: str) -> None:
    topic = create(root)
    new = TxnProducer(root, producer.name).init()
    new.add_group(group)
    assert producer.commit_offset(group, topic, 7) == ErrorCode.INVALID_PRODUCER_EPOCH
    assert new.commit_offset(group, topic, 7, producer_id=new.id + 1) == ErrorCode.INVALID_PRODUCER_ID_MAPPING


def test_the_member_is_checked_as_far_as_it_is_named(producer: TxnProducer, group: str) -> None:
    client, topic = producer.client, create(producer.client)
    producer.add_group(group)
    assert producer.commit_offset("", topic, 7) == ErrorCode.INVALID_GROUP_ID
    no_group = {"generation_id": 4, "member_id": "somebody"}
    assert producer.commit_offset(group, topic, 7, **no_group) == ErrorCode.ILLEGAL_GENERATION
    join(client, group)  # leaves a group behind, with a member that is to come
    refused = join(client, group)
    assert refused.error_code == ErrorCode.MEMBER_ID_REQUIRED
    assert producer.commit_offset(group, topic, 7, **no_group) == ErrorCode.UNKNOWN_MEMBER_ID
    assert producer.commit_offset(group, topic, 7) == 0, "who names no member is no member"


def test_a_member_of_the_consumer_protocol_commits_with_its_epoch(producer: TxnProducer, group: str) -> None:
    client, topic = producer.client, create(producer.client)
    joined = join_consumer(client, group, "a-member", topic)
    assert joined.error_code == 0
    producer.add_group(group)
    old = {"member_id": "a-member", "generation_id": joined.member_epoch + 7}
    assert producer.commit_offset(group, topic, 7, **old) == ErrorCode.ILLEGAL_GENERATION
    now = {"member_id": "a-member", "generation_id": joined.member_epoch}
    assert producer.commit_offset(group, topic, 7, **now) == 0
    assert producer.end().error_code == 0
    wait_for("the marker", lambda: committed(client, group, topic) == 7)


def test_what_is_asked_for_is_checked_per_partition(producer: TxnProducer, group: str) -> None:
    producer.add_group(group)
    assert producer.commit_offset(group, "absent", 7) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_a_group_that_has_only_pending_offsets_may_be_deleted(producer: TxnProducer, group: str) -> None:
    client, topic = producer.client, create(producer.client)
    producer.add_group(group)
    assert producer.commit_offset(group, topic, 7) == 0
    (deleted,) = client.call(DeleteGroupsRequest(groups_names=[group]), 2).results
    assert deleted.error_code == 0
    assert producer.end().error_code == 0
    wait_for("the end", lambda: producer.add(topic) == 0)
    assert stable(client, group, topic) == -1
