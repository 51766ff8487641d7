"""Members of a classic group against a real broker: who gets what, who may commit, what a rebalance does."""

from __future__ import annotations

import itertools
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack

import pytest

from broker_engine.client import Client, ClientConfig, ErrorCode, GroupIdentity, GroupMember, KafkaError, TopicPartition
from broker_engine.client.coordinator import Coordinator, CoordinatorKind
from broker_engine.client.group_offsets import commit_offsets
from tests.broker_engine.broker_process import BrokerProcess
from tests.broker_engine.client.members import until_shared
from tests.broker_engine.client.reading import MakeTopic

SETTINGS = {"group.initial.rebalance.delay.ms": "0", "group.min.session.timeout.ms": "500"}

_groups = (f"group-{number}" for number in itertools.count())


@pytest.fixture
async def other_client(broker: BrokerProcess) -> AsyncIterator[Client]:
    async with Client(ClientConfig(bootstrap=(broker.address(),), retry_backoff_ms=20)) as client:
        yield client


def member_of(client: Client, group: str, topic: str, **given: object) -> GroupMember:
    settings: dict[str, object] = {"session_timeout_ms": 10_000, "heartbeat_interval_ms": 50, **given}
    return GroupMember(client, group, [topic], **settings)  # type: ignore[arg-type]


async def test_one_member_has_everything_and_commits(
    client: Client, make_topic: MakeTopic, members: AsyncExitStack
) -> None:
    topic = await make_topic(3)
    member = await members.enter_async_context(member_of(client, next(_groups), topic))
    assigned = await member.wait_assigned()
    assert assigned == tuple(TopicPartition(topic, index) for index in range(3))
    await member.commit({assigned[0]: 17, assigned[2]: 4})
    assert await member.committed(assigned) == {assigned[0]: 17, assigned[2]: 4}


async def test_a_second_member_gets_its_share_and_gives_it_back(
    client: Client, other_client: Client, make_topic: MakeTopic, members: AsyncExitStack
) -> None:
    topic, group = await make_topic(3), next(_groups)
    events: list[tuple[str, int]] = []

    async def on_assigned(partitions: tuple[TopicPartition, ...]) -> None:
        events.append(("assigned", len(partitions)))

    async def on_revoked(partitions: tuple[TopicPartition, ...]) -> None:
        events.append(("revoked", len(partitions)))

    first = member_of(client, group, topic, on_assigned=on_assigned, on_revoked=on_revoked)
    await members.enter_async_context(first)
    await first.wait_assigned()
    second = member_of(other_client, group, topic)
    async with second:
        shares = await until_shared([first, second], 3)
        assert sorted(len(share) for share in shares) == [1, 2]
        assert not set(shares[0]) & set(shares[1])
    await until_shared([first], 3)
    assert events[:2] == [("assigned", 3), ("revoked", 3)]
    assert events[-1] == ("assigned", 3)


async def test_more_members_than_partitions_leave_the_rest_idle(
    client: Client, make_topic: MakeTopic, members: AsyncExitStack
) -> None:
    topic, group = await make_topic(1), next(_groups)
    three = [member_of(client, group, topic) for _ in range(3)]
    for member in three:
        await members.enter_async_context(member)
    shares = await until_shared(three, 1)
    assert sorted(len(share) for share in shares) == [0, 0, 1]


async def test_an_old_generation_cannot_commit(client: Client, make_topic: MakeTopic, members: AsyncExitStack) -> None:
    topic, group = await make_topic(2), next(_groups)
    first = await members.enter_async_context(member_of(client, group, topic))
    await first.wait_assigned()
    old = first.identity
    second = await members.enter_async_context(member_of(client, group, topic))
    await until_shared([first, second], 2)
    coordinator = Coordinator(client, CoordinatorKind.GROUP, group)
    with pytest.raises(KafkaError) as refused:
        await commit_offsets(coordinator, old, {TopicPartition(topic, 0): 1})
    assert refused.value.code == ErrorCode.ILLEGAL_GENERATION


async def test_nobody_else_commits_while_there_are_members(
    client: Client, make_topic: MakeTopic, members: AsyncExitStack
) -> None:
    topic, group = await make_topic(1), next(_groups)
    member = await members.enter_async_context(member_of(client, group, topic))
    await member.wait_assigned()
    coordinator = Coordinator(client, CoordinatorKind.GROUP, group)
    with pytest.raises(KafkaError) as refused:
        await commit_offsets(coordinator, GroupIdentity(group), {TopicPartition(topic, 0): 1})
    assert refused.value.code == ErrorCode.UNKNOWN_MEMBER_ID


async def test_a_member_that_vanishes_loses_its_partitions_with_its_session(
    client: Client, broker: BrokerProcess, make_topic: MakeTopic, members: AsyncExitStack
) -> None:
    topic, group = await make_topic(2), next(_groups)
    first = await members.enter_async_context(member_of(client, group, topic))
    async with Client(ClientConfig(bootstrap=(broker.address(),))) as doomed_client:
        doomed = member_of(doomed_client, group, topic, session_timeout_ms=500)
        doomed.start()
        await until_shared([first, doomed], 2)
        await doomed.close(is_leaving=False)
    assert len((await until_shared([first], 2))[0]) == 2


async def test_a_static_member_comes_back_to_its_partitions_without_a_rebalance(
    client: Client, make_topic: MakeTopic, members: AsyncExitStack
) -> None:
    topic, group = await make_topic(2), next(_groups)
    first = await members.enter_async_context(member_of(client, group, topic, instance_id="a"))
    second = member_of(client, group, topic, instance_id="b")
    second.start()
    shares = await until_shared([first, second], 2)
    generation = first.identity.generation
    await second.close()
    again = await members.enter_async_context(member_of(client, group, topic, instance_id="b"))
    assert await again.wait_assigned() == shares[1]
    assert again.identity.generation == generation


async def test_a_refusal_that_does_not_pass_is_told(client: Client, make_topic: MakeTopic) -> None:
    topic = await make_topic()
    async with member_of(client, next(_groups), topic, session_timeout_ms=1) as member:
        with pytest.raises(KafkaError) as refused:
            await member.wait_assigned()
        assert refused.value.code == ErrorCode.INVALID_SESSION_TIMEOUT
