"""Accepts connections on all listeners, within limits, and looks after them until they are gone."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Callable

from broker_engine.clock import Clock
from broker_engine.net.stream import Listener, Stream
from broker_engine.server.budget import ByteBudget
from broker_engine.server.connection import Connection, ConnectionTimeouts, RequestHandler
from broker_engine.server.listeners import ListenerSpec

log = logging.getLogger(__name__)

SWEEP_INTERVAL_S = 1.0
_FAILED_ACCEPT_PAUSE_S = 0.1

MakeHandler = Callable[[ListenerSpec, Stream], RequestHandler]


class Acceptor:
    def __init__(
        self,
        make_handler: MakeHandler,
        budget: ByteBudget,
        clock: Clock,
        *,
        timeouts: ConnectionTimeouts,
        connections_max: int,
        connections_per_ip_max: int,
    ) -> None:
        self._make_handler = make_handler
        self._budget = budget
        self._clock = clock
        self._timeouts = timeouts
        self._connections_max = connections_max
        self._connections_per_ip_max = connections_per_ip_max
        self._connections: dict[Connection, None] = {}
        self._count_by_host: Counter[str] = Counter()
        self._tasks: list[asyncio.Task[None]] = []
        self._listeners: list[Listener] = []
        self._all_gone = asyncio.Event()

    @property
    def connection_count(self) -> int:
        return len(self._connections)

    def start(self, listeners: list[tuple[ListenerSpec, Listener]]) -> None:
        """May be called again for more listeners: nodes are let in before clients."""
        loop = asyncio.get_running_loop()
        if not self._tasks:
            self._tasks.append(loop.create_task(self._sweep(), name="sweep connections"))
        for spec, listener in listeners:
            self._listeners.append(listener)
            self._tasks.append(loop.create_task(self._accept(spec, listener), name=f"accept {spec.name}"))

    async def stop(self, grace_s: float) -> None:
        """No new connections; what was begun is answered; whoever is not done in time is cut off."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for listener in self._listeners:
            listener.close()
        for connection in list(self._connections):
            connection.finish()
        try:
            async with asyncio.timeout(grace_s):
                await self._wait_until_all_gone()
        except TimeoutError:
            log.warning("cutting off %d connections", len(self._connections))
            for connection in list(self._connections):
                connection.stream.abort()
            await self._wait_until_all_gone()

    def cut_off_unwelcome(self) -> None:
        """At once, without the answers in flight: whoever was signed in may no longer be told anything."""
        for connection in list(self._connections):
            if not connection.is_welcome:
                log.info("closing %s: its key was revoked or its tenant deleted", connection.stream.peer)
                connection.stream.abort()

    async def _wait_until_all_gone(self) -> None:
        while self._connections:
            self._all_gone.clear()
            await self._all_gone.wait()

    async def _accept(self, spec: ListenerSpec, listener: Listener) -> None:
        while True:
            try:
                stream = await listener.accept()
            except OSError as error:
                # Out of files or memory, most likely: somebody may leave soon, and the listener has to outlive it.
                log.warning("cannot accept on %s: %s", spec.name, error.strerror)
                await asyncio.sleep(_FAILED_ACCEPT_PAUSE_S)
                continue
            self._admit(spec, stream)

    def _admit(self, spec: ListenerSpec, stream: Stream) -> None:
        host = stream.peer_host
        if self._is_full(spec, host):
            log.warning("refusing %s on %s: too many connections", stream.peer, spec.name)
            stream.abort()
            return
        handler = self._make_handler(spec, stream)
        if not handler.is_welcome:
            log.info("refusing %s on %s: the listener's tenant was deleted", stream.peer, spec.name)
            stream.abort()
            return
        connection = Connection(
            stream,
            handler,
            self._budget,
            self._clock,
            timeouts=self._timeouts,
            on_closed=self._on_closed,
        )
        self._connections[connection] = None
        self._count_by_host[host] += 1
        connection.start()

    def _is_full(self, spec: ListenerSpec, host: str) -> bool:
        """Nodes of the cluster always come in: however many clients there are, heartbeats and votes go on."""
        is_crowded = len(self._connections) >= self._connections_max
        return not spec.is_controller and (is_crowded or self._count_by_host[host] >= self._connections_per_ip_max)

    def _on_closed(self, connection: Connection) -> None:
        self._connections.pop(connection, None)
        host = connection.stream.peer_host
        self._count_by_host[host] -= 1
        if self._count_by_host[host] <= 0:
            del self._count_by_host[host]
        if not self._connections:
            self._all_gone.set()

    async def _sweep(self) -> None:
        while True:
            await asyncio.sleep(SWEEP_INTERVAL_S)
            now_ms = self._clock.monotonic_ms()
            for connection in list(self._connections):
                connection.sweep(now_ms)
