"""Links: TCP proxies of our own between nodes, that can be cut, cut one way, slowed down, reset, or lose answers.

    links = Links()                              # a thread with an event loop; close() ends it
    link = links.add(port, ("127.0.0.1", 9092))  # whoever connects to `port` reaches the target
    link.set(forward=Way.HOLD)                   # bytes towards the target stop, without an end of the connection
    link.set(); link.reset(); link.refuse(); link.admit()

TCP bytes never vanish or change places inside a connection, so a cut holds them back until it heals, as a network does
whose packets are sent again. A process that is dead refuses connections; a proxy in front of it cannot know: whoever
kills the target says `refuse`, and `admit` when it is back.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import struct
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, TypeVar

import uvloop

Address = tuple[str, int]
_Result = TypeVar("_Result")
_CHUNK_BYTES = 1 << 16
_PRODUCE_KEY = b"\x00\x00"
_RESET = struct.pack("ii", 1, 0)


class Way(Enum):
    PASS = "pass"
    HOLD = "hold"


@dataclass(slots=True, eq=False)
class _Pair:
    """One connection through a link."""

    client: asyncio.StreamWriter
    target: asyncio.StreamWriter
    is_answer_doomed: bool = False

    def reset(self) -> None:
        for writer in (self.client, self.target):
            _reset(writer)


def _reset(writer: asyncio.StreamWriter) -> None:
    """RST instead of FIN: the other side learns nothing of what was still under way."""
    transport_socket = writer.get_extra_info("socket")
    if transport_socket is not None:  # else it is closed already
        with contextlib.suppress(OSError, ValueError):  # uvloop: its descriptor is gone
            transport_socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
    writer.transport.abort()


@dataclass(slots=True, eq=False)
class Link:
    port: int
    target: Address
    _run: Callable[[Coroutine[Any, Any, Any]], Any]
    delay_s: float = 0.0
    lost_answer_count: int = 0
    """Answers to produce requests that never arrived."""
    _answers_to_lose: int = 0
    _server: asyncio.Server | None = None
    _pairs: dict[_Pair, None] = field(default_factory=dict)
    _gates: dict[str, asyncio.Event] = field(default_factory=dict)

    def set(self, *, forward: Way = Way.PASS, backward: Way = Way.PASS, delay_s: float = 0.0) -> None:
        self._run(self._set(forward, backward, delay_s))

    def set_way(self, name: str, way: Way) -> None:
        """`forward` or `backward`; the other stays as it is."""
        self._run(self._set_way(name, way))

    def reset(self) -> None:
        """Ends every connection with RST; new ones pass."""
        self._run(self._reset())

    def refuse(self) -> None:
        self._run(self._refuse())

    def admit(self) -> None:
        self._run(self.open())

    def lose_answers(self, count: int) -> None:
        """The next `count` produce requests reach the target; their connection is reset before the answer passes."""
        self._answers_to_lose = count

    async def open(self) -> None:
        self._gates = self._gates or {"forward": asyncio.Event(), "backward": asyncio.Event()}
        for gate in self._gates.values():
            gate.set()
        if self._server is None:
            self._server = await asyncio.start_server(self._accept, "127.0.0.1", self.port)

    async def _set(self, forward: Way, backward: Way, delay_s: float) -> None:
        self.delay_s = delay_s
        await self._set_way("forward", forward)
        await self._set_way("backward", backward)

    async def _set_way(self, name: str, way: Way) -> None:
        if way is Way.PASS:
            self._gates[name].set()
        else:
            self._gates[name].clear()

    async def _reset(self) -> None:
        for pair in list(self._pairs):
            pair.reset()

    async def _refuse(self) -> None:
        if self._server is not None:
            self._server.close()
            self._server = None
        await self._reset()

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await self._gates["forward"].wait()
        try:
            target_reader, target_writer = await asyncio.open_connection(*self.target)
        except OSError:
            _reset(writer)
            return
        pair = _Pair(writer, target_writer)
        self._pairs[pair] = None
        ways = (self._forward(reader, pair), self._backward(target_reader, pair))
        await asyncio.gather(*ways, return_exceptions=True)
        self._pairs.pop(pair, None)
        writer.close()
        target_writer.close()

    async def _forward(self, reader: asyncio.StreamReader, pair: _Pair) -> None:
        while chunk := await self._read(reader, "forward", pair):
            if self._answers_to_lose and chunk[4:6] == _PRODUCE_KEY:
                self._answers_to_lose -= 1
                pair.is_answer_doomed = True
            pair.target.write(chunk)
            await pair.target.drain()
        pair.target.write_eof()

    async def _backward(self, reader: asyncio.StreamReader, pair: _Pair) -> None:
        while chunk := await self._read(reader, "backward", pair):
            if pair.is_answer_doomed:
                self.lost_answer_count += 1
                pair.reset()
                return
            pair.client.write(chunk)
            await pair.client.drain()
        pair.client.write_eof()

    async def _read(self, reader: asyncio.StreamReader, way: str, pair: _Pair) -> bytes:
        try:
            chunk = await reader.read(_CHUNK_BYTES)
        except OSError:
            pair.reset()
            raise
        await self._gates[way].wait()
        if self.delay_s:
            await asyncio.sleep(self.delay_s)
        return chunk


class Links:
    def __init__(self) -> None:
        self._loop = uvloop.new_event_loop()
        self._links: list[Link] = []
        self._thread = threading.Thread(target=self._loop.run_forever, name="links", daemon=True)
        self._thread.start()

    def add(self, port: int, target: Address) -> Link:
        link = Link(port, target, self._run)
        self._run(link.open())
        self._links.append(link)
        return link

    def close(self) -> None:
        for link in self._links:
            link.refuse()
        self._run(_end_tasks())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def _run(self, coroutine: Coroutine[Any, Any, _Result]) -> _Result:
        future: Future[_Result] = asyncio.run_coroutine_threadsafe(coroutine, self._loop)
        return future.result(30)


async def _end_tasks() -> None:
    tasks = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
