"""Consumer groups by clients that know nothing of us: shared work, commits, resuming, two tenants with one group id."""

from __future__ import annotations

import json
import os
import subprocess
from collections import Counter
from pathlib import Path

from aiokafka import AIOKafkaConsumer
from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import AdminClient
from kafka import KafkaConsumer

from tests.broker_engine.broker_process import BrokerProcess
from tests.compatibility.conftest import TENANTS, Access, access_for
from tests.compatibility.test_confluent_kafka import create_topic, produce

KAFKAJS = Path(__file__).parent / "kafkajs"
POLLS_MAX = 400


def member(access: Access, group: str, topic: str, **config: object) -> Consumer:
    settings = {"group.id": group, "auto.offset.reset": "earliest", "enable.auto.commit": False, **config}
    consumer = Consumer({**access.librdkafka(), **settings})
    consumer.subscribe([topic])
    return consumer


def read_together(members: list[Consumer], count: int) -> Counter[tuple[int, int]]:
    """Until they have `count` records together; how often each was seen."""
    seen: Counter[tuple[int, int]] = Counter()
    for _ in range(POLLS_MAX):
        for consumer in members:
            for message in consumer.consume(500, timeout=0.05):
                assert message.error() is None, message.error()
                seen[message.partition(), message.offset()] += 1
        if seen.total() >= count:
            return seen
    raise AssertionError(f"only {seen.total()} of {count} records came")


def test_each_record_comes_once_to_each_of_two_groups_of_three(access: Access, topic: str) -> None:
    create_topic(access, topic, partitions=6)
    produce(access, topic, 600)
    for group in (f"{topic}-one", f"{topic}-two"):
        members = [member(access, group, topic) for _ in range(3)]
        seen = read_together(members, 600)
        assert (len(seen), seen.total()) == (600, 600)
        assert sorted(len(consumer.assignment()) for consumer in members) == [2, 2, 2]
        for consumer in members:
            consumer.close()


def test_a_group_goes_on_where_it_committed(access: Access, topic: str) -> None:
    create_topic(access, topic, partitions=1)
    produce(access, topic, 50)
    first = member(access, topic, topic)
    read_together([first], 50)
    first.commit(asynchronous=False)
    first.close()
    produce(access, topic, 10)
    second = member(access, topic, topic)
    assert sorted(read_together([second], 10)) == [(0, offset) for offset in range(50, 60)]
    second.close()


def test_more_members_than_partitions_leaves_the_rest_idle_and_one_that_leaves_is_replaced(
    access: Access, topic: str
) -> None:
    create_topic(access, topic, partitions=1)
    produce(access, topic, 20)
    members = [member(access, topic, topic) for _ in range(2)]
    read_together(members, 20)
    owner = next(consumer for consumer in members if consumer.assignment())
    (idle,) = (consumer for consumer in members if consumer is not owner)
    owner.commit(asynchronous=False)
    owner.close()
    produce(access, topic, 5)
    assert len(read_together([idle], 5)) == 5
    idle.close()


def test_cooperative_members_move_only_what_must_move(access: Access, topic: str) -> None:
    create_topic(access, topic, partitions=4)
    produce(access, topic, 40)
    config = {"partition.assignment.strategy": "cooperative-sticky"}
    first = member(access, topic, topic, **config)
    read_together([first], 40)
    assert len(first.assignment()) == 4
    second = member(access, topic, topic, **config)
    for _ in range(POLLS_MAX):
        first.poll(0.05)
        second.poll(0.05)
        if (len(first.assignment()), len(second.assignment())) == (2, 2):
            break
    assert (len(first.assignment()), len(second.assignment())) == (2, 2)
    first.close()
    second.close()


def test_a_static_member_comes_back_to_what_it_had(access: Access, topic: str) -> None:
    create_topic(access, topic, partitions=2)
    produce(access, topic, 20)
    members = [member(access, topic, topic, **{"group.instance.id": f"static-{i}"}) for i in range(2)]
    read_together(members, 20)
    had = members[0].assignment()
    members[0].close()  # static members do not say good-bye
    again = member(access, topic, topic, **{"group.instance.id": "static-0"})
    for _ in range(POLLS_MAX):
        again.poll(0.05)
        members[1].poll(0.0)
        if again.assignment():
            break
    assert again.assignment() == had
    again.close()
    members[1].close()


async def test_aiokafka_commits_and_resumes(access: Access, topic: str) -> None:
    create_topic(access, topic, partitions=2)
    produce(access, topic, 40)
    config = {**access.python_client(), "group_id": topic, "auto_offset_reset": "earliest"}
    async with AIOKafkaConsumer(topic, **config, enable_auto_commit=False) as consumer:
        for _ in range(40):
            await consumer.getone()
        await consumer.commit()
    produce(access, topic, 3)
    async with AIOKafkaConsumer(topic, **config) as consumer:
        assert {(await consumer.getone()).offset >= 0 for _ in range(3)} == {True}


def test_kafka_python_commits_and_resumes(access: Access, topic: str) -> None:
    create_topic(access, topic, partitions=1)
    produce(access, topic, 30)
    config = {**access.python_client(), "group_id": topic, "auto_offset_reset": "earliest"}
    first = KafkaConsumer(topic, **config, enable_auto_commit=False)
    for _ in range(30):
        next(first)
    first.commit()
    first.close()
    produce(access, topic, 2)
    second = KafkaConsumer(topic, **config)
    assert [next(second).offset for _ in range(2)] == [30, 31]
    second.close()


def test_kafkajs_consumes_and_commits(access: Access, topic: str) -> None:
    create_topic(access, topic, partitions=1)
    produce(access, topic, 25)
    environment = {**os.environ, "BOOTSTRAP": access.bootstrap, "TOPIC": topic, "GROUP": topic, "COUNT": "25"}
    if access.username is not None and access.password is not None:
        environment |= {"USERNAME": access.username, "PASSWORD": access.password}
    done = subprocess.run(
        ["node", "consume.js"], cwd=KAFKAJS, env=environment, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert len(result["values"]) == 25
    assert [(row["partition"], row["offset"]) for row in result["committed"]] == [(0, "25")]


def test_admin_lists_describes_and_deletes_groups(access: Access, topic: str) -> None:
    create_topic(access, topic, partitions=1)
    produce(access, topic, 5)
    consumer = member(access, topic, topic)
    read_together([consumer], 5)
    consumer.commit(asynchronous=False)
    admin = AdminClient(access.librdkafka())
    listed = {group.group_id: group.state.name for group in admin.list_consumer_groups().result().valid}
    assert listed[topic] == "STABLE"
    described = admin.describe_consumer_groups([topic])[topic].result()
    assert [len(each.assignment.topic_partitions) for each in described.members] == [1]
    consumer.close()
    admin.delete_consumer_groups([topic])[topic].result()
    assert topic not in {group.group_id for group in admin.list_consumer_groups().result().valid}


def test_the_same_group_of_two_tenants_is_two_groups(
    broker: BrokerProcess, keys: dict[str, tuple[str, str]], topic: str
) -> None:
    mine, theirs = (access_for(tenant, broker, keys, with_sasl=True) for tenant in TENANTS)
    for access in (mine, theirs):
        create_topic(access, topic, partitions=1)
        produce(access, topic, 10)
    consumer = member(mine, topic, topic)
    read_together([consumer], 10)
    consumer.commit(asynchronous=False)
    other = Consumer({**theirs.librdkafka(), "group.id": topic})
    (committed,) = other.committed([TopicPartition(topic, 0)], timeout=30)
    assert committed.offset < 0, "nothing was committed here"
    admin = AdminClient(theirs.librdkafka())  # kept: a client that is let go takes an answer that is late with it
    assert topic not in {g.group_id for g in admin.list_consumer_groups().result().valid}
    other.close()
    consumer.close()
