"""The WebSocket against a real server and a real broker."""

from __future__ import annotations

import asyncio
import json
import uuid
from base64 import b64encode
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidStatus

from tests.web.stack import Account, Stack

SUBPROTOCOL = "highwater.v1.json"
PLENTY = {"records": 10_000, "bytes": 50_000_000}


class Socket:
    def __init__(self, connection: ClientConnection) -> None:
        self.connection = connection

    async def say(self, **frame: Any) -> None:
        await self.connection.send(json.dumps(frame))

    async def hear(self, kind: str, timeout_s: float = 15) -> dict[str, Any]:
        """The next frame of that type; others are passed over, errors are not."""
        async with asyncio.timeout(timeout_s):
            while True:
                frame: dict[str, Any] = json.loads(await self.connection.recv())
                if frame["type"] == kind:
                    return frame
                assert frame["type"] != "error", frame

    async def hear_records(self, count: int) -> list[dict[str, Any]]:
        records: list[dict[str, Any]] = []
        while len(records) < count:
            records += (await self.hear("records"))["batch"]
        return records

    async def subscribe(self, topic: str, **fields: Any) -> dict[str, Any]:
        await self.say(**{"type": "subscribe", "id": 1, "topic": topic, "credit": PLENTY, **fields})
        return await self.hear("subscribed")


def basic(account: Account) -> dict[str, str]:
    return {"Authorization": "Basic " + b64encode(f"{account.key_id}:{account.secret}".encode()).decode()}


@asynccontextmanager
async def opened(stack: Stack, **options: Any) -> AsyncIterator[Socket]:
    async with connect(stack.websocket_url, subprotocols=[SUBPROTOCOL], **options) as connection:  # type: ignore[list-item]
        yield Socket(connection)


@pytest.fixture
async def socket(stack: Stack) -> AsyncIterator[Socket]:
    async with opened(stack, additional_headers=basic(stack.demo)) as socket:
        await socket.say(type="hello", client="test")
        await socket.hear("welcome")
        yield socket


@pytest.fixture
def topic(stack: Stack) -> str:
    return stack.create_topic(stack.demo, f"ws-{uuid.uuid4().hex[:8]}")


def produce(stack: Stack, topic: str, *values: Any, account: Account | None = None) -> None:
    with stack.http(account or stack.demo) as client:
        answer = client.post(f"/topics/{topic}/records", json=[{"value": value} for value in values])
        assert answer.status_code == 200, answer.text


def data(records: list[dict[str, Any]]) -> list[str]:
    return [record["value"]["data"] for record in records]


async def test_records_arrive_as_they_are_produced(stack: Stack, socket: Socket, topic: str) -> None:
    subscribed = await socket.subscribe(topic, start="latest")
    assert subscribed["positions"] == {"0": "0"}
    produce(stack, topic, "a", "b")
    records = await socket.hear_records(2)
    assert data(records) == ["a", "b"]
    assert records[0]["offset"] == "0"


async def test_from_the_start_then_caught_up_then_live(stack: Stack, socket: Socket, topic: str) -> None:
    produce(stack, topic, *(f"v{n}" for n in range(700)))
    await socket.subscribe(topic, start="earliest")
    assert data(await socket.hear_records(700)) == [f"v{n}" for n in range(700)]
    await socket.hear("caught_up")
    produce(stack, topic, "live")
    assert data(await socket.hear_records(1)) == ["live"]


async def test_tail_and_offsets(stack: Stack, socket: Socket, topic: str) -> None:
    produce(stack, topic, *"abcde")
    assert (await socket.subscribe(topic, start={"tail": 2}))["positions"] == {"0": "3"}
    assert data(await socket.hear_records(2)) == ["d", "e"]
    await socket.subscribe(topic, start={"offsets": {"0": "1"}})
    assert data(await socket.hear_records(4)) == ["b", "c", "d", "e"]


async def test_credit_stops_and_starts_the_flow(stack: Stack, socket: Socket, topic: str) -> None:
    produce(stack, topic, *(f"v{n}" for n in range(10)))
    sub = (await socket.subscribe(topic, start="earliest", credit={"records": 3, "bytes": 1000}))["sub"]
    frame = await socket.hear("records")
    while frame["remaining_credit"]["records"]:
        frame = await socket.hear("records")
    assert frame["batch"][-1]["offset"] == "2"
    await socket.say(type="ping", t=1)
    await socket.hear("pong")  # an answer to something later came first: no record was on its way
    await socket.say(type="credit", sub=sub, records=2, bytes=1000)
    assert data(await socket.hear_records(2)) == ["v3", "v4"]


async def test_byte_credit_lets_one_record_pass_and_no_more(stack: Stack, socket: Socket, topic: str) -> None:
    produce(stack, topic, "x" * 100, "y" * 100)
    sub = (await socket.subscribe(topic, start="earliest", credit={"records": 10, "bytes": 1}))["sub"]
    frame = await socket.hear("records")
    assert len(frame["batch"]) == 1
    assert frame["remaining_credit"] == {"records": 9, "bytes": 0}
    await socket.say(type="credit", sub=sub, bytes=100)
    assert data((await socket.hear("records"))["batch"]) == ["y" * 100]


async def test_unsubscribe_ends_one_subscription_only(stack: Stack, socket: Socket, topic: str) -> None:
    first = (await socket.subscribe(topic, id="first"))["sub"]
    second = (await socket.subscribe(topic, id="second"))["sub"]
    await socket.say(type="unsubscribe", sub=first)
    await socket.hear("unsubscribed")
    produce(stack, topic, "x")
    assert (await socket.hear("records"))["sub"] == second


async def test_an_error_of_one_subscription_leaves_the_socket_open(socket: Socket, topic: str) -> None:
    await socket.say(type="subscribe", id="absent", topic="absent", credit=PLENTY)
    frame = await hear_error(socket)
    assert (frame["id"], frame["code"], frame["retryable"]) == ("absent", "not_found", False)
    await socket.say(type="subscribe", id="far", topic=topic, start={"offsets": {"0": 99}}, credit=PLENTY)
    assert (await hear_error(socket))["code"] == "offset_out_of_range"
    await socket.subscribe(topic)


async def hear_error(socket: Socket) -> dict[str, Any]:
    async with asyncio.timeout(15):
        frame: dict[str, Any] = json.loads(await socket.connection.recv())
    assert frame["type"] == "error", frame
    return frame


async def test_another_tenants_topic_is_not_there(stack: Stack, socket: Socket) -> None:
    theirs = stack.create_topic(stack.other, f"theirs-{uuid.uuid4().hex[:8]}")
    await socket.say(type="subscribe", id=1, topic=theirs, credit=PLENTY)
    assert (await hear_error(socket))["code"] == "not_found"
    await socket.say(type="watch", id=2, topic=theirs)
    assert (await hear_error(socket))["code"] == "not_found"


async def test_watch_shows_the_high_watermark_move(stack: Stack, socket: Socket, topic: str) -> None:
    await socket.say(type="watch", id="w", topic=topic)
    await socket.hear("subscribed")
    first = await socket.hear("partitions")
    assert first["data"][0]["high_watermark"] == "0"
    produce(stack, topic, *"abc")
    frame = await socket.hear("partitions")
    while frame["data"][0]["high_watermark"] != "3":
        frame = await socket.hear("partitions")
    assert frame["data"][0]["replicas"] == [{"broker": 1, "in_sync": True, "log_end_offset": "3"}]


async def test_a_browser_signs_in_with_a_ticket_that_works_once(stack: Stack, topic: str) -> None:
    with stack.http(stack.demo) as client:
        ticket = client.post("/ws-tickets").json()["ticket"]
    async with opened(stack, origin=stack.url) as socket:
        await socket.say(type="hello", token=ticket)
        await socket.hear("welcome")
        await socket.subscribe(topic)
    async with opened(stack, origin=stack.url) as socket:
        await socket.say(type="hello", token=ticket)
        assert await close_code(socket) == 4401


async def close_code(socket: Socket) -> int:
    with pytest.raises(ConnectionClosed) as closed:
        await listen_to_the_end(socket)
    assert closed.value.rcvd is not None
    return closed.value.rcvd.code


async def listen_to_the_end(socket: Socket) -> None:
    async with asyncio.timeout(15):
        while True:
            await socket.connection.recv()


@pytest.mark.parametrize("origin", ["https://evil.example", None])
async def test_foreign_pages_are_refused_before_the_socket_opens(stack: Stack, origin: str | None) -> None:
    with pytest.raises(InvalidStatus) as refused:
        async with opened(stack, origin=origin):
            pass
    assert refused.value.response.status_code == 403


async def test_other_subprotocols_and_paths_are_refused(stack: Stack) -> None:
    for url, protocol in ((stack.websocket_url, "mqtt"), (stack.websocket_url + "x", SUBPROTOCOL)):
        with pytest.raises(InvalidStatus) as refused:
            async with connect(url, subprotocols=[protocol], origin=stack.url):  # type: ignore[list-item, arg-type]
                pass
        assert refused.value.response.status_code == 403


async def test_a_wrong_key_closes_with_4401(stack: Stack) -> None:
    wrong = Account("demo", stack.demo.key_id, "wrong")
    async with opened(stack, additional_headers=basic(wrong)) as socket:
        assert await close_code(socket) == 4401


@pytest.mark.parametrize(
    ("frame", "code"), [("{", 4400), ('{"type":"subscribe"}', 4400), ('"' + "x" * (1 << 20) + '"', 4413), (b"x", 4400)]
)
async def test_bad_frames_close_with_their_code(stack: Stack, frame: str | bytes, code: int) -> None:
    async with opened(stack, additional_headers=basic(stack.demo)) as socket:
        await socket.connection.send(frame)
        assert await close_code(socket) == code


async def test_many_subscriptions_of_one_socket(stack: Stack, socket: Socket, topic: str) -> None:
    for number in range(8):
        await socket.subscribe(topic, id=number)
    produce(stack, topic, "x")
    heard = {(await socket.hear("records"))["sub"] for _ in range(8)}
    assert len(heard) == 8


async def test_the_server_says_goodbye_when_it_stops(stack: Stack) -> None:
    async with opened(stack, additional_headers=basic(stack.demo)) as socket:
        await socket.say(type="hello")
        await socket.hear("welcome")
        stopping = asyncio.create_task(asyncio.to_thread(stack.stop_server))
        try:
            assert (await socket.hear("goodbye"))["reconnect"] is True
            assert await close_code(socket) == 4503
        finally:
            assert await stopping in (0, -15)
            await asyncio.to_thread(stack.start_server)


async def test_a_subscription_outlives_a_restart_of_the_broker(stack: Stack, socket: Socket, topic: str) -> None:
    produce(stack, topic, "before")
    await socket.subscribe(topic, start="earliest")
    assert data(await socket.hear_records(1)) == ["before"]
    await asyncio.to_thread(stack.broker.stop)
    await asyncio.to_thread(stack.broker.start)
    await asyncio.to_thread(produce, stack, topic, "after")
    assert data(await socket.hear_records(1)) == ["after"]
