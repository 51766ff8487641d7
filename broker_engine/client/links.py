"""Connections by address: one that all share per broker, redialed with backoff, and private ones for long polls.

A broker answers a connection's requests one after the other, so a long poll on a shared connection would make
everything behind it wait.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager

from broker_engine.client.backoff import backoff_ms
from broker_engine.client.config import BrokerAddress, ClientConfig
from broker_engine.client.connection import Connection
from broker_engine.client.errors import ClientClosed, ConnectionFailed, KafkaError
from broker_engine.client.handshake import open_connection
from broker_engine.client.tasks import TaskSet, join
from broker_engine.clock import Clock
from broker_engine.net.stream import Dialer

_IDLE_LEASES_MAX = 8


class BrokerLink:
    """One broker's shared connection. `last_error` is why there is none, while there is none."""

    def __init__(self, address: BrokerAddress, links: Links) -> None:
        self.address = address
        self.last_error: KafkaError | None = None
        self.retry_at_ms = 0
        self._links = links
        self._connection: Connection | None = None
        self._dialing: asyncio.Task[Connection] | None = None
        self._failure_count = 0

    def ready(self) -> Connection | None:
        """The open connection, or None after having begun to dial (unless the last failure is too recent)."""
        if self._connection is not None and self._connection.is_open:
            return self._connection
        if self._dialing is None and self._links.clock.monotonic_ms() >= self.retry_at_ms:
            self._start_dialing()
        return None

    @property
    def is_dialing(self) -> bool:
        return self._dialing is not None

    @property
    def open_connection(self) -> Connection | None:
        return self._connection if self._connection is not None and self._connection.is_open else None

    async def get(self) -> Connection:
        """The open connection, or the outcome of one attempt to make it; waits out the backoff first."""
        connection = self.open_connection
        if connection is not None:
            return connection
        dialing = self._dialing if self._dialing is not None else self._start_dialing()
        return await join(dialing)

    def _start_dialing(self) -> asyncio.Task[Connection]:
        self._links.check_open()
        self._dialing = self._links.tasks.spawn(self._dial(), f"dial {self.address}")
        return self._dialing

    async def _dial(self) -> Connection:
        try:
            await asyncio.sleep(max(0, self.retry_at_ms - self._links.clock.monotonic_ms()) / 1000)
            connection = await self._links.open(self.address)
        except KafkaError as error:
            self._count_failure(error)
            raise
        else:
            self._failure_count, self.last_error = 0, None
            connection.on_closed = self._on_closed
            self._connection = connection
            return connection
        finally:
            self._dialing = None
            self._links.notify()

    def _count_failure(self, error: KafkaError) -> None:
        self.last_error = error
        self._failure_count += 1
        config = self._links.config
        wait_ms = backoff_ms(
            self._failure_count,
            base_ms=config.reconnect_backoff_ms,
            ceiling_ms=config.reconnect_backoff_ms_max,
            random_unit=self._links.random_unit,
        )
        self.retry_at_ms = self._links.clock.monotonic_ms() + wait_ms

    def _on_closed(self) -> None:
        self._connection = None
        self._count_failure(ConnectionFailed(str(self.address), "the connection broke"))
        self._links.notify()


class Links:
    """All connections of one client."""

    def __init__(
        self,
        config: ClientConfig,
        dialer: Dialer,
        clock: Clock,
        tasks: TaskSet,
        random_unit: Callable[[], float],
    ) -> None:
        self.random_unit = random_unit
        self.config = config
        self.clock = clock
        self.tasks = tasks
        self._dialer = dialer
        self._links: dict[BrokerAddress, BrokerLink] = {}
        self._connections: dict[Connection, None] = {}
        self._idle_leases: dict[BrokerAddress, list[Connection]] = {}
        self._lease_slots: dict[BrokerAddress, asyncio.Semaphore] = {}
        self._listeners: dict[Callable[[], None], None] = {}
        self._is_closed = False

    def check_open(self) -> None:
        if self._is_closed:
            raise ClientClosed("the client is closed")

    def add_listener(self, listener: Callable[[], None]) -> None:
        """Called whenever a connection comes or goes, or the metadata changed."""
        self._listeners[listener] = None

    def remove_listener(self, listener: Callable[[], None]) -> None:
        self._listeners.pop(listener, None)

    def notify(self) -> None:
        for listener in list(self._listeners):
            listener()

    def link(self, address: BrokerAddress) -> BrokerLink:
        link = self._links.get(address)
        if link is None:
            link = self._links[address] = BrokerLink(address, self)
        return link

    async def open(self, address: BrokerAddress) -> Connection:
        """A connection of the caller's own; it closes it, or close() does."""
        self.check_open()
        connection = await open_connection(self._dialer, address, self.config)
        if self._is_closed:
            connection.close()
            raise ClientClosed("the client was closed meanwhile")
        self._connections = {known: None for known in self._connections if known.is_open}
        self._connections[connection] = None
        return connection

    async def any_connection(self, known: Iterable[BrokerAddress]) -> Connection:
        """An open connection to whomever, or else the first of the known and bootstrap addresses that answers."""
        opened = [link.open_connection for link in self._links.values()]
        ready = [connection for connection in opened if connection is not None]
        if ready:
            return min(ready, key=lambda connection: connection.in_flight_count)
        errors: list[KafkaError] = []
        for address in dict.fromkeys([*known, *self.config.addresses]):
            try:
                return await self.link(address).get()
            except ConnectionFailed as error:
                errors.append(error)
        raise _combined(errors)

    @asynccontextmanager
    async def lease(self, address: BrokerAddress) -> AsyncIterator[Connection]:
        """A private connection for one exchange, kept for the next one unless an answer is still due on it."""
        slots = self._lease_slots.setdefault(address, asyncio.Semaphore(self.config.fetch_connections_max))
        async with slots:
            connection = await self._take_lease(address)
            try:
                yield connection
            finally:
                self._put_lease(connection)

    async def _take_lease(self, address: BrokerAddress) -> Connection:
        idle = self._idle_leases.get(address, [])
        while idle:
            connection = idle.pop()
            if connection.is_open:
                return connection
        return await self.open(address)

    def _put_lease(self, connection: Connection) -> None:
        idle = self._idle_leases.setdefault(connection.address, [])
        is_reusable = connection.is_open and connection.in_flight_count == 0
        if is_reusable and len(idle) < _IDLE_LEASES_MAX and not self._is_closed:
            idle.append(connection)
        else:
            connection.close()

    async def close(self) -> None:
        """Close every connection. The owner of the task set ends the dialing."""
        self._is_closed = True
        connections, self._connections = self._connections, {}
        for connection in connections:
            connection.close()
        await asyncio.gather(*(connection.wait_closed() for connection in connections))


def _combined(errors: list[KafkaError]) -> ConnectionFailed:
    if len(errors) == 1 and isinstance(errors[0], ConnectionFailed):
        return errors[0]
    reasons = "; ".join(error.message for error in errors)
    return ConnectionFailed("no broker could be reached", reasons)
