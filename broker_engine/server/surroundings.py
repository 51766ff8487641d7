"""All that a broker touches outside of itself, in one value: the machine's own by default, the simulator's in there."""

from __future__ import annotations

import gc
import ssl
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from broker_engine.clock import Clock, Randomness, SystemClock, SystemRandomness
from broker_engine.net.sockets import SocketDialer, SocketListener
from broker_engine.net.stream import Dialer, Listener, NetCounters
from broker_engine.security.cluster_secret import load_or_create
from broker_engine.server.loop_watch import LoopWatch
from broker_engine.server.store import DiskStore, Store


class Listen(Protocol):
    def __call__(
        self, host: str, port: int, *, counters: NetCounters, tls: ssl.SSLContext | None, backlog: int
    ) -> Listener:
        """OSError where the address cannot be bound."""
        ...


def _make_dialer(counters: NetCounters) -> Dialer:
    return SocketDialer(counters=counters)


def _settle_memory() -> None:
    """What start-up made stays: the collector need not look at it again."""
    gc.collect()
    gc.freeze()


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    clock: Clock = field(default_factory=SystemClock)
    randomness: Randomness = field(default_factory=SystemRandomness)
    open_store: Callable[[Path], Store] = DiskStore
    listen: Listen = SocketListener
    make_dialer: Callable[[NetCounters], Dialer] = _make_dialer
    load_cluster_secret: Callable[[Path], str] = load_or_create
    sleep_in_thread: Callable[[float], None] = time.sleep
    """Seconds; for work in threads that keeps to a rate."""
    settle_memory: Callable[[], None] = _settle_memory
    watch_loop: Callable[[], AbstractContextManager[object]] = LoopWatch
    """Entered on the loop, for as long as the broker runs."""
