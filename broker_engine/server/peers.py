"""Connections to the other nodes' controller listeners, signed in with the cluster secret.

A lane is a connection of its own: a node answers one connection's requests in order, so that a long poll on one lane
never holds up a vote on another. A connection that breaks is followed by one probe of the node, and whoever listens is
told whether the node's port was refused: then its process is gone, and nobody need wait for a time-out.
"""

from __future__ import annotations

import asyncio
import logging
import ssl
from collections.abc import Callable
from typing import Literal, TypeVar

from broker_engine.client.backoff import backoff_ms
from broker_engine.client.config import BrokerAddress, ClientConfig, PlainCredentials
from broker_engine.client.connection import Connection
from broker_engine.client.errors import AuthenticationFailed, ConnectionFailed, KafkaError
from broker_engine.client.handshake import open_connection
from broker_engine.client.tasks import TaskSet, join
from broker_engine.clock import Clock, Randomness
from broker_engine.net.stream import Dialer
from broker_engine.security.principal import BROKER_NAME
from broker_engine.wire.schema import Message

log = logging.getLogger(__name__)

DIAL_TIMEOUT_MS = 2_000
PROBE_TIMEOUT_MS = 1_000
BACKOFF_MS, BACKOFF_MS_MAX = 20, 1_000
DOUBT_MS, GONE_MS = 100, 1_000
"""A node whose connection broke counts as gone until the probe has looked; once its port was refused, as long as the
controller may need to see to it."""
_RESET_PROBES_MAX = 10
_RESET_PAUSE_S = 0.02

R = TypeVar("R", bound=Message)
Health = Literal["refused", "silent", "alive"]
FindAddress = Callable[[int], tuple[str, int] | None]
OnLost = Callable[[int, bool], None]


class _Lane:
    """One connection to one node: dialed when asked for, shared by all who ask, redialed with backoff."""

    def __init__(self, node_id: int, name: str, peers: Peers) -> None:
        self.node_id = node_id
        self.name = name
        self._peers = peers
        self._connection: Connection | None = None
        self._dialing: asyncio.Task[Connection] | None = None
        self._failure_count = 0
        self._retry_at_ms = 0

    async def get(self) -> Connection:
        if self._connection is not None and self._connection.is_open:
            return self._connection
        if self._dialing is None:
            self._dialing = self._peers.tasks.spawn(self._dial(), f"dial node {self.node_id} ({self.name})")
            self._dialing.add_done_callback(self._on_dialed)
        return await join(self._dialing)

    def _on_dialed(self, task: asyncio.Task[Connection]) -> None:
        self._dialing = None

    async def _dial(self) -> Connection:
        wait_ms = self._retry_at_ms - self._peers.clock.monotonic_ms()
        if wait_ms > 0:
            await self._peers.wait_for_sign(self.node_id, wait_ms / 1000)
        try:
            connection = await self._peers.open(self.node_id)
        except KafkaError as error:
            self._on_dial_failed(error)
            raise
        self._failure_count = self._retry_at_ms = 0
        self._connection = connection
        connection.on_closed = self._on_closed
        return connection

    def _on_dial_failed(self, error: KafkaError) -> None:
        self._failure_count += 1
        self._retry_at_ms = self._peers.clock.monotonic_ms() + backoff_ms(
            self._failure_count,
            base_ms=BACKOFF_MS,
            ceiling_ms=BACKOFF_MS_MAX,
            random_unit=self._peers.randomness.unit,
        )
        if is_refused(error):
            self._peers.tell_lost(self.node_id, is_refused=True)

    def _on_closed(self) -> None:
        self._connection = None
        self._peers.on_broken(self.node_id)

    def close(self) -> None:
        if self._connection is not None:
            self._connection.on_closed = None
            self._connection.close()


class Peers:
    def __init__(
        self,
        *,
        node_id: int,
        dialer: Dialer,
        clock: Clock,
        randomness: Randomness,
        cluster_secret: str,
        find_address: FindAddress,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self.clock = clock
        self.randomness = randomness
        self.tasks = TaskSet("peers")
        self.on_lost: list[OnLost] = []
        """Told (node id, is refused) after a connection to a node broke or could not be made."""
        self._node_id = node_id
        self._dialer = dialer
        self._find_address = find_address
        self._sasl = PlainCredentials(BROKER_NAME, cluster_secret)
        self._tls = tls
        self._lanes: dict[tuple[int, str], _Lane] = {}
        self._probing: dict[int, asyncio.Task[None]] = {}
        self._signs: dict[int, asyncio.Event] = {}
        self._gone_until_ms: dict[int, int] = {}
        self._refused_at_ms: dict[int, int] = {}
        self._is_closed = False

    def note_alive(self, node_id: int) -> None:
        """It was heard of: whoever waits before the next try to reach it need not wait any longer."""
        sign = self._signs.pop(node_id, None)
        if sign is not None:
            sign.set()

    async def wait_for_sign(self, node_id: int, timeout_s: float) -> None:
        try:
            async with asyncio.timeout(timeout_s):
                await self._signs.setdefault(node_id, asyncio.Event()).wait()
        except TimeoutError:
            return

    def address_of(self, node_id: int) -> tuple[str, int]:
        """ConnectionFailed where nobody knows it (yet)."""
        address = self._find_address(node_id)
        if address is None:
            raise ConnectionFailed(f"node {node_id}", "its controller address is not known")
        return address

    async def ask(
        self,
        node_id: int,
        message: Message,
        answer: type[R],
        *,
        lane: str,
        timeout_ms: int,
        version: int | None = None,
    ) -> R:
        """The node's answer, or ConnectionFailed: not reached, not answered in time, or it does not let us in."""
        began_ms = self.clock.monotonic_ms()
        try:
            async with asyncio.timeout(timeout_ms / 1000):
                connection = await self._lane(node_id, lane).get()
            left_ms = max(1, timeout_ms - (self.clock.monotonic_ms() - began_ms))
            return await connection.ask(message, answer, version=version, timeout_ms=left_ms)
        except ConnectionFailed:
            raise
        except KafkaError as error:
            raise ConnectionFailed(f"node {node_id}", error.message) from error
        except TimeoutError as error:
            raise ConnectionFailed(f"node {node_id}", f"no connection within {timeout_ms} ms") from error

    async def hold(self, node_id: int, *, lane: str) -> None:
        """Have a connection, only to hear of its end. ConnectionFailed as for `ask`."""
        await self._lane(node_id, lane).get()

    def hang_up(self, node_id: int, *, lane: str) -> None:
        """Whoever waits for an answer there gets ConnectionFailed now; the next one to ask dials anew."""
        if (known := self._lanes.get((node_id, lane))) is not None:
            known.close()

    async def probe(self, node_id: int) -> Health:
        """By a connection of its own. A port that takes us and hangs up is a process that ends: ask once more."""
        for _ in range(_RESET_PROBES_MAX):
            began_ms = self.clock.monotonic_ms()
            try:
                (await self.open(node_id, timeout_ms=PROBE_TIMEOUT_MS)).close()
            except KafkaError as error:
                if is_refused(error):
                    return "refused"
                if self.clock.monotonic_ms() - began_ms >= PROBE_TIMEOUT_MS:
                    return "silent"
                await asyncio.sleep(_RESET_PAUSE_S)
            else:
                return "alive"
        return "silent"

    async def open(self, node_id: int, *, timeout_ms: int = DIAL_TIMEOUT_MS) -> Connection:
        """A new connection, signed in, that the caller owns."""
        assert node_id != self._node_id, "a node does not dial itself"
        address = BrokerAddress(*self.address_of(node_id))
        try:
            connection = await open_connection(self._dialer, address, self._config(address, timeout_ms))
        except AuthenticationFailed as error:
            log.error("node %d does not let us in, do both have the same cluster secret? %s", node_id, error.message)
            raise
        self._gone_until_ms.pop(node_id, None)
        self._refused_at_ms.pop(node_id, None)
        self.note_alive(node_id)
        return connection

    def _config(self, address: BrokerAddress, timeout_ms: int) -> ClientConfig:
        return ClientConfig(
            bootstrap=(str(address),),
            client_id=f"node-{self._node_id}",
            sasl=self._sasl,
            tls=self._tls,
            connect_timeout_ms=timeout_ms,
        )

    def _lane(self, node_id: int, name: str) -> _Lane:
        if self._is_closed:
            raise ConnectionFailed(f"node {node_id}", "this node is stopping")
        lane = self._lanes.get((node_id, name))
        if lane is None:
            lane = self._lanes[node_id, name] = _Lane(node_id, name, self)
        return lane

    def on_broken(self, node_id: int) -> None:
        """Several lanes break at once when a process ends: one probe speaks for all of them."""
        self._gone_until_ms[node_id] = self.clock.monotonic_ms() + DOUBT_MS
        if not self._is_closed and node_id not in self._probing:
            self._probing[node_id] = self.tasks.spawn(self._probe_lost(node_id), f"probe node {node_id}")

    async def _probe_lost(self, node_id: int) -> None:
        try:
            health = await self.probe(node_id)
        finally:
            del self._probing[node_id]
        log.info("a connection to node %d broke; it is %s", node_id, health)
        self.tell_lost(node_id, is_refused=health == "refused")

    def is_gone(self, node_id: int) -> bool:
        """As far as this node can tell before the metadata does: its process has just ended."""
        return self.gone_for_ms(node_id) > 0

    def gone_for_ms(self, node_id: int) -> int:
        """For how long it will still be so, unless there is a sign of life."""
        return max(0, self._gone_until_ms.get(node_id, 0) - self.clock.monotonic_ms())

    def tell_lost(self, node_id: int, *, is_refused: bool) -> None:
        if is_refused:
            now_ms = self.clock.monotonic_ms()
            self._refused_at_ms.setdefault(node_id, now_ms)
            self._gone_until_ms[node_id] = self._refused_at_ms[node_id] + GONE_MS
        for listener in self.on_lost:
            listener(node_id, is_refused)

    async def close(self) -> None:
        self._is_closed = True
        await self.tasks.close()
        for lane in self._lanes.values():
            lane.close()


def is_refused(error: BaseException) -> bool:
    return isinstance(error, ConnectionFailed) and isinstance(error.__cause__, ConnectionRefusedError)
