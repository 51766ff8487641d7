"""Groups end to end: a real consumer, a real broker's telemetry, REST and the WebSocket of a real server."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from tests.web.stack import Account, Stack, wait_until
from tests.web.test_socket import basic, opened, produce

WITHIN_S = 30.0


@pytest.fixture
def topic(stack: Stack) -> str:
    return stack.create_topic(stack.demo, f"groups-{uuid.uuid4().hex[:8]}", partitions=2)


@pytest.fixture
def group() -> str:
    return f"readers/{uuid.uuid4().hex[:8]}"


class Member:
    """A member of librdkafka's, which reads when it is told to."""

    def __init__(self, stack: Stack, group: str, topic: str, **settings: Any) -> None:
        account = stack.demo
        self._consumer = Consumer(
            {
                "bootstrap.servers": stack.broker.address("clients"),
                "security.protocol": "SASL_PLAINTEXT",
                "sasl.mechanism": "PLAIN",
                "sasl.username": account.key_id,
                "sasl.password": account.secret,
                "group.id": group,
                "client.id": f"client-{uuid.uuid4().hex[:6]}",
                "enable.auto.commit": False,
                "auto.offset.reset": "earliest",
                **settings,
            }
        )
        self._consumer.subscribe([topic])

    def read(self, count: int) -> None:
        deadline_s = time.monotonic() + WITHIN_S
        while count > 0:
            assert time.monotonic() < deadline_s, "the records did not come"
            message = self._consumer.poll(0.2)
            if message is not None and message.error() is None:
                count -= 1

    def commit(self, offsets: dict[int, int], topic: str, metadata: str = "") -> None:
        wanted = [TopicPartition(topic, index, offset, metadata) for index, offset in offsets.items()]
        self._consumer.commit(offsets=wanted, asynchronous=False)

    def close(self) -> None:
        self._consumer.close()


@pytest.fixture
def member(stack: Stack, group: str, topic: str) -> Iterator[Member]:
    member = Member(stack, group, topic)
    yield member
    member.close()


def send(stack: Stack, topic: str, *, age_s: float = 0.0, account: Account | None = None) -> None:
    """Ten records into each partition, written so long ago."""
    sender = account or stack.demo
    producer = Producer(
        {
            "bootstrap.servers": stack.broker.address("clients"),
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "PLAIN",
            "sasl.username": sender.key_id,
            "sasl.password": sender.secret,
        }
    )
    at_ms = int((time.time() - age_s) * 1000)
    for number in range(20):
        producer.produce(topic, value=f"v{number}".encode(), partition=number % 2, timestamp=at_ms)
    assert producer.flush(WITHIN_S) == 0


def path(group: str) -> str:
    return f"/groups/{group.replace('/', '%2F')}"


def shown(stack: Stack, group: str, is_so: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
    """The group's page, when it has come to be so."""
    pages: list[Any] = [None]

    def look() -> bool:
        with stack.http(stack.demo) as client:
            answer = client.get(path(group))
        pages[0] = answer.json()
        return answer.status_code == 200 and is_so(pages[0])

    wait_until(look, WITHIN_S, lambda: str(pages[0]))
    page: dict[str, Any] = pages[0]
    return page


def rows(page: dict[str, Any], name: str) -> list[Any]:
    return [row[name] for row in page["partitions"]]


def test_a_consumers_lag_position_and_joining_are_shown(stack: Stack, group: str, topic: str, member: Member) -> None:
    send(stack, topic, age_s=3600)
    member.read(20)
    member.commit({0: 4, 1: 10}, topic, metadata="half way")
    page = shown(stack, group, lambda it: rows(it, "lag") == ["6", "0"] and rows(it, "position") == ["10", "10"])
    assert (page["state"], page["protocol"], page["member_count"]) == ("Stable", "classic", 1)
    assert (page["coordinator"], 0 <= page["offsets_partition"] < 50) == (1, True)
    assert rows(page, "committed") == ["4", "10"]
    assert rows(page, "metadata") == ["half way"] * 2
    assert rows(page, "repeat_count") == ["6", "0"], "what was sent and not committed"
    page = shown(stack, group, lambda it: it["lag_seconds"] is not None and it["lag_seconds"] > 0)
    assert 3600 <= page["lag_seconds"] < 3700, "by the record's own timestamp"
    kinds = [event["kind"] for event in page["events"]]
    assert "joined" in kinds
    assert "rebalanced" in kinds
    [owner] = page["members"]
    assert owner["partitions"] == [{"topic": topic, "partitions": [0, 1]}]
    with stack.http(stack.demo) as client:
        assert [it["name"] for it in client.get(f"/topics/{topic}/groups").json()["data"]] == [group]
    with stack.http(stack.other) as client:
        assert client.get(path(group)).status_code == 404


def test_a_group_of_the_consumer_protocol_is_shown_alike(stack: Stack, group: str, topic: str) -> None:
    send(stack, topic)
    member = Member(stack, group, topic, **{"group.protocol": "consumer"})
    try:
        member.read(20)
        member.commit({0: 4, 1: 10}, topic)
        page = shown(stack, group, lambda it: rows(it, "lag") == ["6", "0"] and rows(it, "position") == ["10", "10"])
        assert (page["protocol"], page["state"], page["assignor"]) == ("consumer", "Stable", "uniform")
        assert page["members"][0]["partitions"] == [{"topic": topic, "partitions": [0, 1]}]
        with stack.http(stack.demo) as client:
            refused = client.post(f"{path(group)}:reset-offsets", json={"to": "earliest"})
        assert refused.status_code == 409, refused.text
    finally:
        member.close()


def test_offsets_are_reset_when_the_members_are_gone(stack: Stack, group: str, topic: str, member: Member) -> None:
    send(stack, topic)
    member.read(20)
    member.commit({0: 10, 1: 10}, topic)
    reset = f"{path(group)}:reset-offsets"
    with stack.http(stack.demo) as client:
        plan = client.post(f"{reset}?dry_run=true", json={"to": "shift", "shift": -3}).json()
        assert [(step["before"], step["after"], step["replayed_count"]) for step in plan["steps"]] == [
            ("10", "7", "3"),
            ("10", "7", "3"),
        ]
        preview = client.get(plan["steps"][0]["preview"].removeprefix("/api/v1")).json()["records"]
        assert preview[0]["value"]["data"] == "v14"
        refused = client.post(reset, json={"to": "earliest"})
        assert refused.status_code == 409
        assert "has 1 member" in refused.json()["detail"]
        member.close()
        done = client.post(reset, json={"to": "file", "csv": f"{topic},0,2\n{topic},1,3\n"})
        assert done.status_code == 200, done.text
        assert client.get(f"{path(group)}/offsets.csv").text == f"{topic},0,2\n{topic},1,3\n"
        page = shown(stack, group, lambda it: rows(it, "committed") == ["2", "3"])
        assert (page["state"], page["lag"]) == ("Empty", "15")
        assert client.delete(f"{path(group)}/offsets?topic={topic}&partitions=1").json() == {"deleted_count": 1}
        shown(stack, group, lambda it: rows(it, "committed") == ["2"])
        assert client.delete(path(group)).status_code == 204
        wait_until(lambda: client.get(path(group)).status_code == 404, WITHIN_S)


async def test_a_watched_group_moves(stack: Stack, group: str, topic: str) -> None:
    with stack.http(stack.demo) as client:
        wish = {"to": "latest", "topics": [{"topic": topic}]}
        assert client.post(f"{path(group)}:reset-offsets", json=wish).status_code == 200
    shown(stack, group, lambda it: it["lag"] == "0")
    async with opened(stack, additional_headers=basic(stack.demo)) as socket:
        await socket.say(type="hello", client="test")
        await socket.hear("welcome")
        await socket.say(type="watch", id=1, group=group)
        await socket.say(type="watch", id=2, groups=True)
        first = await socket.hear("group")
        assert (first["group"], first["data"]["lag"]) == (group, "0")
        assert group in [row["name"] for row in (await socket.hear("groups"))["data"]]
        produce(stack, topic, *"abc")
        frame = await socket.hear("group")
        while frame["data"]["lag"] != "3":
            frame = await socket.hear("group")
