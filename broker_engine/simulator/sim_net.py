"""A network of hosts: who listens where, how long bytes take, which ways are cut.

Within a connection bytes never vanish and never change their order (that is TCP). What can go wrong: a way is cut, in
one direction or both, and bytes wait until it heals; a connection is reset, also in the midst of a message; nobody
listens (refused); the host is off, and nobody answers at all.
"""

from __future__ import annotations

import asyncio
import ssl
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from random import Random

from broker_engine.net.stream import Listener, NetCounters, Stream
from broker_engine.simulator.sim_loop import SimLoop
from broker_engine.simulator.sim_process import Process
from broker_engine.simulator.sim_stream import Pipe, SimStream

_SYN_RETRY_S = 0.2
_PORT_FIRST = 40_000


@dataclass(slots=True, eq=False)
class Host:
    name: str
    is_on: bool = True
    listeners: dict[int, SimListener] = field(default_factory=dict)
    streams: dict[SimStream, None] = field(default_factory=dict)


class SimNet:
    def __init__(self, loop: SimLoop, seed: str, *, latency_s: float = 0.0003) -> None:
        self.loop = loop
        self.random = Random(f"{seed}/net")  # noqa: S311 - latencies, nothing secret
        self.latency_s = latency_s
        self.split_ratio = 0.02
        """Of the sends so many arrive in two pieces."""
        self.window_bytes = 256 * 1024
        self.slow_factors: dict[tuple[str, str], float] = {}
        self._hosts: dict[str, Host] = {}
        self._cuts: dict[tuple[str, str], int] = {}
        self._waiting: dict[Pipe, None] = {}
        self._port = _PORT_FIRST

    def host(self, name: str) -> Host:
        found = self._hosts.get(name)
        if found is None:
            found = self._hosts[name] = Host(name)
        return found

    # --- ways

    def cut(self, source: str, target: str) -> None:
        """Nothing gets from `source` to `target` until as many heals. The other direction is another matter."""
        self._cuts[source, target] = self._cuts.get((source, target), 0) + 1

    def heal(self, source: str, target: str) -> None:
        left = self._cuts.pop((source, target), 0) - 1
        if left > 0:
            self._cuts[source, target] = left
        self._wake()

    def heal_all(self) -> None:
        self._cuts.clear()
        self.slow_factors.clear()
        self._wake()

    def is_open(self, source: str, target: str) -> bool:
        return (source, target) not in self._cuts

    def delay_s(self, source: str, target: str) -> float:
        unit = self.random.random()
        delay_s = self.latency_s * (0.5 + unit + (20 * unit if unit > 0.99 else 0))
        return delay_s * self.slow_factors.get((source, target), 1.0) if self.slow_factors else delay_s

    def wait_for_way(self, pipe: Pipe) -> None:
        self._waiting[pipe] = None

    def _wake(self) -> None:
        waiting, self._waiting = self._waiting, {}
        for pipe in waiting:
            pipe.kick()

    # --- connections

    def connections(self, one: str, other: str) -> list[SimStream]:
        """Of those between two hosts, the first one's ends."""
        return [stream for stream in self.host(one).streams if stream.peer_host == other]

    def reset(self, stream: SimStream) -> None:
        """A middle-box drops the connection: both ends are told, and what was under way is lost."""
        stream.break_off(ConnectionResetError("connection reset by peer"))

    def drop_host(self, name: str, *, is_silent: bool) -> None:
        """The process is gone: the kernel ends its connections. `is_silent`: so is the kernel, nobody is told."""
        host = self.host(name)
        for listener in list(host.listeners.values()):
            listener.close()
        streams, host.streams = host.streams, {}
        for stream in streams:
            stream.die(is_silent=is_silent)
        if is_silent:
            host.is_on = False

    def switch_on(self, name: str) -> None:
        self.host(name).is_on = True
        self._wake()

    async def connect(self, source: str, process: Process, host: str, port: int) -> SimStream:
        await asyncio.sleep(self.delay_s(source, host))
        target = self.host(host)
        while not (target.is_on and self.is_open(source, host) and self.is_open(host, source)):  # noqa: ASYNC110 - virtual time
            await asyncio.sleep(_SYN_RETRY_S)
        await asyncio.sleep(self.delay_s(host, source))
        listener = target.listeners.get(port)
        if listener is None:
            raise ConnectionRefusedError(111, f"nobody listens on {host}:{port}")
        return self._establish(source, process, target, listener)

    def _establish(self, source: str, process: Process, target: Host, listener: SimListener) -> SimStream:
        self._port += 1
        near = SimStream(self, process, source, (target.name, listener.port))
        far = SimStream(self, listener.process, target.name, (source, self._port))
        near.attach(far)
        self.host(source).streams[near] = None
        target.streams[far] = None
        listener.offer(far)
        return near

    def forget(self, stream: SimStream) -> None:
        self.host(stream.host).streams.pop(stream, None)


class SimListener:
    """See Listener."""

    def __init__(self, net: SimNet, process: Process, host: str, port: int) -> None:
        self.process = process
        self.port = port
        self._net = net
        self._host = net.host(host)
        self._queue: deque[SimStream] = deque()
        self._waiter: asyncio.Future[None] | None = None
        if port in self._host.listeners:
            raise OSError(98, "address already in use")
        self._host.listeners[port] = self

    @property
    def address(self) -> tuple[str, int]:
        return self._host.name, self.port

    def offer(self, stream: SimStream) -> None:
        self._queue.append(stream)
        self._net.loop.call_as(self.process, self._net.loop.now_s, self._wake)

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    async def accept(self) -> Stream:
        while not self._queue:
            self._waiter = asyncio.get_running_loop().create_future()
            await self._waiter
        return self._queue.popleft()

    def close(self) -> None:
        if self._host.listeners.get(self.port) is self:
            del self._host.listeners[self.port]
        for stream in self._queue:
            stream.abort()
        self._queue.clear()


@dataclass(frozen=True, slots=True)
class SimDialer:
    """See Dialer."""

    net: SimNet
    process: Process
    host: str

    async def connect(self, host: str, port: int, *, tls: ssl.SSLContext | None = None) -> Stream:
        assert tls is None, "the simulated network has no TLS"
        return await self.net.connect(self.host, self.process, host, port)


@dataclass(frozen=True, slots=True)
class SimDoor:
    """What a broker listens with: see Listen."""

    net: SimNet
    process: Process

    def __call__(
        self, host: str, port: int, *, counters: NetCounters, tls: ssl.SSLContext | None, backlog: int
    ) -> Listener:
        assert tls is None, "the simulated network has no TLS"
        return SimListener(self.net, self.process, host, port)


def ways(names: list[str]) -> Iterator[tuple[str, str]]:
    """Every ordered pair."""
    for source in names:
        for target in names:
            if source != target:
                yield source, target
