"""Admin calls on groups against a real broker: offsets of groups without members, members of those that have some."""

from __future__ import annotations

import pytest

from broker_engine.client import Admin, Client, KafkaError, TopicPartition
from broker_engine.client.group_member import GroupMember
from broker_engine.client.groups_admin import CommittedOffset
from broker_engine.errors import ErrorCode
from tests.broker_engine.client.reading import MakeTopic


async def code_of(call: object) -> ErrorCode:
    with pytest.raises(KafkaError) as caught:
        await call  # type: ignore[misc]
    return caught.value.code


async def test_offsets_are_set_read_and_deleted(client: Client, make_topic: MakeTopic) -> None:
    admin, topic = Admin(client), await make_topic(partitions=3)
    wanted = {TopicPartition(topic, 0): 5, TopicPartition(topic, 2): 2**60}
    assert await admin.commit_group_offsets("offsets", wanted) == dict.fromkeys(wanted)
    assert await admin.group_offsets("offsets") == {
        target: CommittedOffset(offset, -1, "") for target, offset in wanted.items()
    }
    assert list(await admin.group_offsets("offsets", [TopicPartition(topic, 2)])) == [TopicPartition(topic, 2)]
    assert await admin.group_offsets("offsets", [TopicPartition(topic, 1)]) == {}
    await admin.delete_group_offsets("offsets", [TopicPartition(topic, 0)])
    assert list(await admin.group_offsets("offsets")) == [TopicPartition(topic, 2)]


async def test_an_offset_of_a_partition_that_is_not_there_is_refused_alone(
    client: Client, make_topic: MakeTopic
) -> None:
    topic = await make_topic()
    good, bad = TopicPartition(topic, 0), TopicPartition(topic, 7)
    outcomes = await Admin(client).commit_group_offsets("partly", {good: 1, bad: 1})
    assert outcomes[good] is None
    refusal = outcomes[bad]
    assert isinstance(refusal, KafkaError)
    assert refusal.code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


async def test_groups_are_listed_described_and_deleted(client: Client, make_topic: MakeTopic) -> None:
    admin, topic = Admin(client), await make_topic()
    await admin.commit_group_offsets("listed", {TopicPartition(topic, 0): 5})
    [listed] = [group for group in await admin.list_groups() if group.name == "listed"]
    assert (listed.state, listed.type) == ("Empty", "classic")
    described = await admin.describe_group("listed")
    assert (described.state, described.members) == ("Empty", ())
    assert described.coordinator == listed.coordinator == await admin.find_coordinator("listed")
    await admin.delete_group("listed")
    assert await code_of(admin.describe_group("listed")) is ErrorCode.GROUP_ID_NOT_FOUND
    assert await code_of(admin.delete_group("listed")) is ErrorCode.GROUP_ID_NOT_FOUND


async def test_a_group_with_members_keeps_its_offsets(client: Client, make_topic: MakeTopic) -> None:
    admin, topic = Admin(client), await make_topic()
    async with GroupMember(client, "busy", [topic]) as member:
        await member.wait_assigned()
        described = await admin.describe_group("busy")
        assert (described.state, len(described.members)) == ("Stable", 1)
        outcomes = await admin.commit_group_offsets("busy", {TopicPartition(topic, 0): 5})
        refusal = outcomes[TopicPartition(topic, 0)]
        assert isinstance(refusal, KafkaError)
        assert refusal.code == ErrorCode.UNKNOWN_MEMBER_ID
        assert await code_of(admin.delete_group("busy")) is ErrorCode.NON_EMPTY_GROUP
