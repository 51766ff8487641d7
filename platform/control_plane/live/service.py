"""The process's one tail of the telemetry stream, started and stopped with the ASGI server."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from django.conf import settings

from broker_engine.client import Client, ClientConfig, PlainCredentials
from control_plane.environment import Environment
from control_plane.live.snapshot import Snapshot, TopicKey
from control_plane.live.tail import TelemetryTail

SERVICE_USER = "control-plane"


class LiveService:
    """`snapshot` and `is_connected` may be read from any thread; everything else belongs to the event loop."""

    def __init__(self) -> None:
        self.snapshot = Snapshot()
        self._watchers: defaultdict[TopicKey, set[asyncio.Event]] = defaultdict(set)
        self._tail: TelemetryTail | None = None
        self._task: asyncio.Task[None] | None = None
        self.snapshot.add_listener(self._notify)

    @property
    def is_connected(self) -> bool:
        """False where nothing reads the stream: then ask the engine instead of the snapshot."""
        return self._tail is not None and self._tail.is_connected

    async def start(self) -> None:
        assert self._task is None, "started twice"
        environment = settings.HIGHWATER
        self._tail = TelemetryTail(self.snapshot, lambda: make_client(environment))
        self._task = asyncio.get_running_loop().create_task(self._tail.run(), name="telemetry tail")

    async def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            with suppress(asyncio.CancelledError):
                await self._task
            self._task = None

    @contextmanager
    def watching(self, tenant: str, topic: str) -> Iterator[asyncio.Event]:
        """An event that is set at each change of the topic's rows; the watcher clears it."""
        changed, key = asyncio.Event(), (tenant, topic)
        self._watchers[key].add(changed)
        try:
            yield changed
        finally:
            self._watchers[key].discard(changed)
            if not self._watchers[key]:
                del self._watchers[key]

    def _notify(self, topic: TopicKey) -> None:
        for changed in self._watchers.get(topic, ()):
            changed.set()


def make_client(environment: Environment) -> Client:
    secret = environment.read_cluster_secret()
    return Client(
        ClientConfig(
            bootstrap=environment.engine_bootstrap,
            client_id="highwater-live",
            sasl=PlainCredentials(SERVICE_USER, secret),
            tls=environment.engine_tls(),
        )
    )


live = LiveService()
