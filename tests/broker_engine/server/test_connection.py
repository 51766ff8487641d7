"""One connection over a real socket: order, one at a time, budgets, muting, silence, slow readers."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator

import pytest

from broker_engine.clock import SystemClock
from broker_engine.net.sockets import SocketDialer, SocketListener
from broker_engine.server.budget import ByteBudget
from broker_engine.server.connection import Connection, ConnectionTimeouts
from broker_engine.server.outcome import HANG_UP, NO_ANSWER, Later, Outcome
from tests.broker_engine.net.test_sockets import Peer, until
from tests.broker_engine.server.test_framer import framed


class Echo:
    """Answers what the request says: `wait` until released, `ack` alike but lets others begin, `hold` until let go and
    then as `ack`, `bye`, `mute`, else itself.
    """

    def __init__(self) -> None:
        self.frame_bytes_max = 1 << 20
        self.is_authenticated = True
        self.is_welcome = True
        self.begun: list[bytes] = []
        self.release = asyncio.Event()
        self.let_go = asyncio.Event()

    def on_frame(self, frame: memoryview, following: Iterator[memoryview]) -> tuple[Outcome | Later, int]:
        return self._on_body(bytes(frame)), 0

    def _on_body(self, body: bytes) -> Outcome | Later:
        self.begun.append(body[:20])
        if body.startswith((b"wait", b"ack")):
            is_ack = body.startswith(b"ack")
            return Later(self._wait(body), is_next_allowed=is_ack, is_cancelled_with_connection=not is_ack)
        if body.startswith(b"hold"):
            return Later(self._hold(body))
        if body == b"bye":
            return HANG_UP
        return NO_ANSWER if body == b"mute" else Outcome([framed(body)])

    async def _hold(self, body: bytes) -> Later:
        await self.let_go.wait()
        return Later(self._wait(body), is_next_allowed=True)

    async def _wait(self, body: bytes) -> Outcome:
        await self.release.wait()
        return Outcome([framed(body)])


class Running:
    def __init__(self, *, budget_bytes: int = 1 << 20) -> None:
        self.listener = SocketListener("127.0.0.1", 0)
        self.handler = Echo()
        self.budget = ByteBudget(budget_bytes)
        self.closed: list[Connection] = []
        self.connections: list[Connection] = []
        self.peers: list[Peer] = []

    async def connect(self) -> Peer:
        stream, accepted = await asyncio.gather(SocketDialer().connect(*self.listener.address), self.listener.accept())
        connection = Connection(
            accepted,
            self.handler,
            self.budget,
            SystemClock(),
            timeouts=ConnectionTimeouts(),
            on_closed=self.closed.append,
        )
        connection.start()
        self.connections.append(connection)
        self.peers.append(Peer(stream))
        return self.peers[-1]


@pytest.fixture
async def make() -> AsyncIterator[Callable[..., Running]]:
    made: list[Running] = []

    def make_one(**options: int) -> Running:
        made.append(Running(**options))
        return made[-1]

    yield make_one
    for running in made:
        for peer in running.peers:
            peer.stream.abort()
        await until(lambda running=running: len(running.closed) == len(running.connections))  # type: ignore[misc]
        running.listener.close()
        assert running.budget.taken_bytes == 0


async def test_pipelined_requests_are_answered_in_order(make: Callable[..., Running]) -> None:
    client = await make().connect()
    bodies = [b"%d" % number for number in range(500)]
    client.stream.send([framed(*bodies)])
    await until(lambda: client.received == framed(*bodies))


async def test_a_long_poll_holds_up_the_next_request(make: Callable[..., Running]) -> None:
    running = make()
    client = await running.connect()
    client.stream.send([framed(b"wait", b"next")])
    await until(lambda: running.handler.begun == [b"wait"])
    running.handler.release.set()
    await until(lambda: client.received == framed(b"wait", b"next"))


async def test_an_acknowledgement_lets_the_next_begin_but_answers_first(make: Callable[..., Running]) -> None:
    running = make()
    client = await running.connect()
    client.stream.send([framed(b"ack-1", b"ack-2", b"next")])
    await until(lambda: len(running.handler.begun) == 3)
    assert client.received == b""
    running.handler.release.set()
    await until(lambda: client.received == framed(b"ack-1", b"ack-2", b"next"))


async def test_a_request_may_hold_up_the_next_one_for_a_part_of_its_time(make: Callable[..., Running]) -> None:
    running = make()
    client = await running.connect()
    client.stream.send([framed(b"hold"), framed(b"second")])
    await until(lambda: running.handler.begun == [b"hold"])
    running.handler.let_go.set()
    await until(lambda: running.handler.begun == [b"hold", b"second"])
    assert client.received == b""
    running.handler.release.set()
    await until(lambda: client.received == framed(b"hold") + framed(b"second"))


async def test_at_most_16_requests_are_in_flight(make: Callable[..., Running]) -> None:
    running = make()
    client = await running.connect()
    bodies = [b"ack-%d" % number for number in range(40)]
    client.stream.send([framed(*bodies)])
    await until(lambda: len(running.handler.begun) == 16)
    running.handler.release.set()
    await until(lambda: client.received == framed(*bodies))


async def test_no_answer_means_no_bytes(make: Callable[..., Running]) -> None:
    client = await make().connect()
    client.stream.send([framed(b"mute", b"heard")])
    await until(lambda: client.received == framed(b"heard"))


async def test_a_refused_request_closes_after_the_answers_before_it(make: Callable[..., Running]) -> None:
    client = await make().connect()
    client.stream.send([framed(b"first", b"bye", b"never")])
    await until(lambda: client.closed_count == 1)
    assert client.received == framed(b"first")


async def test_a_length_above_the_limit_closes_at_once(make: Callable[..., Running]) -> None:
    client = await make().connect()
    client.stream.send([(2 << 20).to_bytes(4, "big")])
    await until(lambda: client.closed_count == 1)


async def test_large_frames_wait_for_the_budget_and_all_get_through(make: Callable[..., Running]) -> None:
    running = make(budget_bytes=1 << 20)
    clients = [await running.connect() for _ in range(6)]
    body = b"x" * 900_000  # one at a time fits
    for client in clients:
        client.stream.send([framed(body)])
    await until(lambda: all(len(client.received) == len(body) + 4 for client in clients))


async def test_a_client_that_leaves_cancels_its_long_poll(make: Callable[..., Running]) -> None:
    running = make()
    client = await running.connect()
    client.stream.send([framed(b"wait")])
    await until(lambda: running.handler.begun == [b"wait"])
    client.stream.abort()
    await until(lambda: len(running.closed) == 1)


async def test_a_frame_that_never_ends_is_closed_by_the_sweep(make: Callable[..., Running]) -> None:
    running = make()
    client = await running.connect()
    client.stream.send([b"\x00\x00\x10\x00half"])
    connection = running.connections[0]
    await until(lambda: connection._framer.is_inside_frame)
    now_ms = SystemClock().monotonic_ms()
    connection.sweep(now_ms + 29_000)
    assert not connection.stream.is_closed
    connection.sweep(now_ms + 31_000)
    await until(lambda: client.closed_count == 1)


async def test_a_silent_connection_is_closed_after_ten_minutes(make: Callable[..., Running]) -> None:
    running = make()
    client = await running.connect()
    running.connections[0].sweep(SystemClock().monotonic_ms() + 601_000)
    await until(lambda: client.closed_count == 1)


async def test_a_reader_that_never_reads_is_muted_then_closed(make: Callable[..., Running]) -> None:
    running = make(budget_bytes=10 << 20)
    client = await running.connect()
    client.stream.pause()
    for _ in range(30):
        client.stream.send([framed(b"y" * 500_000)])
    connection = running.connections[0]
    await until(lambda: connection.stream.write_buffer_bytes > 1 << 20)
    begun_count = len(running.handler.begun)
    assert begun_count < 30
    now_ms = SystemClock().monotonic_ms()
    connection.sweep(now_ms)
    connection.sweep(now_ms + 31_000)
    await until(lambda: len(running.closed) == 1)
    assert len(running.handler.begun) == begun_count


async def test_shutdown_does_not_wait_for_long_polls(make: Callable[..., Running]) -> None:
    running = make()
    client = await running.connect()
    client.stream.send([framed(b"wait")])
    await until(lambda: running.handler.begun == [b"wait"])
    running.connections[0].finish()
    await until(lambda: client.closed_count == 1)
    assert client.received == b""


async def test_shutdown_answers_what_was_begun(make: Callable[..., Running]) -> None:
    running = make()
    client = await running.connect()
    client.stream.send([framed(b"ack", b"after")])
    await until(lambda: len(running.handler.begun) == 2)
    running.connections[0].finish()
    running.handler.release.set()
    await until(lambda: client.closed_count == 1)
    assert client.received == framed(b"ack", b"after")
