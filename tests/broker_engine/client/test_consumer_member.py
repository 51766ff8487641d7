"""Members of a KIP-848 group against a real broker: only what changes hands is given back, old epochs are fenced."""

from __future__ import annotations

import asyncio
import itertools
from contextlib import AsyncExitStack

import pytest

from broker_engine.client import Client, ConsumerMember, ErrorCode, GroupIdentity, KafkaError, TopicPartition
from broker_engine.client.coordinator import Coordinator, CoordinatorKind
from broker_engine.client.group_offsets import commit_offsets
from tests.broker_engine.client.members import until_shared
from tests.broker_engine.client.reading import MakeTopic

SETTINGS = {
    "group.consumer.min.session.timeout.ms": "500",
    "group.consumer.session.timeout.ms": "500",
    "group.consumer.min.heartbeat.interval.ms": "20",
    "group.consumer.heartbeat.interval.ms": "20",
    "group.consumer.assignment.interval.ms": "0",
}

_groups = (f"group-{number}" for number in itertools.count())


class Moves:
    """What a member was given and gave back, by the number of partitions."""

    def __init__(self) -> None:
        self.seen: list[tuple[str, int]] = []

    async def on_assigned(self, partitions: tuple[TopicPartition, ...]) -> None:
        self.seen.append(("assigned", len(partitions)))

    async def on_revoked(self, partitions: tuple[TopicPartition, ...]) -> None:
        self.seen.append(("revoked", len(partitions)))

    async def on_lost(self, partitions: tuple[TopicPartition, ...]) -> None:
        self.seen.append(("lost", len(partitions)))


def member_of(client: Client, group: str, topic: str, moves: Moves | None = None) -> ConsumerMember:
    moves = moves or Moves()
    return ConsumerMember(
        client, group, [topic], on_assigned=moves.on_assigned, on_revoked=moves.on_revoked, on_lost=moves.on_lost
    )


async def test_one_member_has_everything_and_commits(
    client: Client, make_topic: MakeTopic, members: AsyncExitStack
) -> None:
    topic = await make_topic(3)
    member = await members.enter_async_context(member_of(client, next(_groups), topic))
    (assigned,) = await until_shared([member], 3)
    await member.commit({assigned[0]: 17, assigned[2]: 4})
    assert await member.committed(assigned) == {assigned[0]: 17, assigned[2]: 4}


async def test_a_second_member_takes_its_share_and_the_rest_stays(
    client: Client, make_topic: MakeTopic, members: AsyncExitStack
) -> None:
    topic, group, moves = await make_topic(3), next(_groups), Moves()
    first = await members.enter_async_context(member_of(client, group, topic, moves))
    await until_shared([first], 3)
    async with member_of(client, group, topic) as second:
        shares = await until_shared([first, second], 3)
        assert sorted(len(share) for share in shares) == [1, 2]
        given_back = 3 - len(shares[0])
        assert moves.seen == [("assigned", 3), ("revoked", given_back)]
    await until_shared([first], 3)
    assert moves.seen[2:] == [("assigned", given_back)]


async def test_a_member_that_vanishes_loses_its_partitions_with_its_session(
    client: Client, make_topic: MakeTopic, members: AsyncExitStack
) -> None:
    topic, group = await make_topic(2), next(_groups)
    first = await members.enter_async_context(member_of(client, group, topic))
    doomed = member_of(client, group, topic)
    doomed.start()
    await until_shared([first, doomed], 2)
    await doomed.close(is_leaving=False)
    assert len((await until_shared([first], 2))[0]) == 2


async def test_a_member_that_was_thrown_out_loses_all_and_joins_again(
    client: Client, make_topic: MakeTopic, members: AsyncExitStack
) -> None:
    topic, group, moves = await make_topic(2), next(_groups), Moves()
    member = await members.enter_async_context(member_of(client, group, topic, moves))
    await until_shared([member], 2)
    impostor = member_of(client, group, topic)
    impostor._identity = member.identity
    await impostor._leave()
    while len(moves.seen) < 3:  # noqa: ASYNC110 - it is the member's task that makes it so
        await asyncio.sleep(0.01)
    await until_shared([member], 2)
    assert moves.seen == [("assigned", 2), ("lost", 2), ("assigned", 2)]


async def test_whoever_is_no_member_any_more_cannot_commit(client: Client, make_topic: MakeTopic) -> None:
    topic, group = await make_topic(1), next(_groups)
    async with asyncio.timeout(30), member_of(client, group, topic) as member:
        await until_shared([member], 1)
        old = member.identity
    coordinator = Coordinator(client, CoordinatorKind.GROUP, group)
    async with asyncio.timeout(30), member_of(client, group, topic) as successor:
        await until_shared([successor], 1)
        for identity in (old, GroupIdentity(group)):
            with pytest.raises(KafkaError) as refused:
                await commit_offsets(coordinator, identity, {TopicPartition(topic, 0): 1})
            assert refused.value.code == ErrorCode.UNKNOWN_MEMBER_ID
