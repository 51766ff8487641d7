"""Several real brokers that form a cluster: `python -m broker_engine serve` with one `--quorum`, on loopback ports.

    with ClusterProcess(tmp_path, 3) as cluster:       # all ready; leaving kills what still runs
        cluster.bootstrap                               # "127.0.0.1:40123,127.0.0.1:40125,..."
        cluster[2].kill()                               # SIGKILL; stop() is SIGTERM, start() begins again
        cluster.leader_id()                             # of the metadata quorum, as a running node knows it

Time-outs are short, so that nothing takes longer than it must: heartbeats each 200 ms, sessions of 2 s. Ports and
directories are kept over restarts. Nothing here sleeps for a fixed time.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Self, TypeVar

from broker_engine.wire.messages.describe_cluster import DescribeClusterRequest, DescribeClusterResponse
from broker_engine.wire.messages.metadata import MetadataRequest, MetadataResponse
from tests.broker_engine.broker_process import BrokerProcess
from tests.broker_engine.raw_client import RawClient
from tests.ports import own_port

QUICK: Mapping[str, str] = {
    "broker.heartbeat.interval.ms": "200",
    "broker.session.timeout.ms": "2000",
    "controller.quorum.election.timeout.ms": "500",
    "controller.quorum.fetch.timeout.ms": "1000",
    "controller.quorum.election.backoff.max.ms": "200",
    "replica.fetch.backoff.ms": "100",
    "replica.lag.time.max.ms": "2000",
}
WAIT_S = 20.0

T = TypeVar("T")


def wait_for(what: str, look: Callable[[], T | None], *, timeout_s: float = WAIT_S) -> T:
    """The first value that is there; OSError counts as not there yet."""
    deadline = time.monotonic() + timeout_s
    while True:
        try:
            value = look()
        except OSError:
            value = None
        if value:
            return value
        assert time.monotonic() < deadline, f"{what} did not happen within {timeout_s} s"
        time.sleep(0.01)  # between two looks, not for anything to happen


@contextmanager
def stopped(*nodes: BrokerProcess) -> Iterator[None]:
    """By SIGSTOP; they go on at the end."""
    try:
        for node in nodes:
            os.kill(node.pid, signal.SIGSTOP)
        yield
    finally:
        for node in nodes:
            os.kill(node.pid, signal.SIGCONT)


class ClusterProcess:
    def __init__(
        self,
        directory: Path,
        count: int = 3,
        *,
        settings: Mapping[str, str] | None = None,
        settings_of: Mapping[int, Mapping[str, str]] | None = None,
        listeners: Mapping[str, str] | None = None,
    ) -> None:
        self.directory = directory
        self.secret_file = directory / "cluster-secret"
        self.addresses = {node_id: f"127.0.0.1:{own_port()}" for node_id in range(1, count + 1)}
        self.spare_port = own_port()
        self._common = {**QUICK, **(settings or {})}
        self._listeners = listeners or {"default": "PLAINTEXT"}
        self.nodes = {
            node_id: self.make_node(node_id, settings=(settings_of or {}).get(node_id)) for node_id in self.addresses
        }

    @property
    def quorum(self) -> str:
        return ",".join(f"{node_id}@{address}" for node_id, address in self.addresses.items())

    def make_node(
        self,
        node_id: int,
        *,
        directory: str | None = None,
        quorum: str | None = None,
        settings: Mapping[str, str] | None = None,
    ) -> BrokerProcess:
        given = {"controller.quorum.voters": quorum or self.quorum, "cluster.secret.file": str(self.secret_file)}
        return BrokerProcess(
            self.directory / (directory or f"node-{node_id}"),
            node_id=node_id,
            listeners=self._listeners,
            settings={**self._common, **given, **(settings or {})},
        )

    def __getitem__(self, node_id: int) -> BrokerProcess:
        return self.nodes[node_id]

    def __iter__(self) -> Iterator[BrokerProcess]:
        return iter(self.nodes.values())

    def __enter__(self) -> Self:
        try:
            self.start()
        except BaseException:  # `__exit__` is not called for what did not begin
            self._kill_all()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._kill_all()

    def _kill_all(self) -> None:
        for node in self.running:
            node.kill()

    def start(self) -> None:
        """All that do not run; they need each other, so that nobody is waited for before all are launched."""
        launched = [node for node in self if not node.is_running]
        for node in launched:
            node.launch()
        for node in launched:
            node.wait_ready()

    def stop(self) -> None:
        for node in self.running:
            node.stop()

    @property
    def running(self) -> list[BrokerProcess]:
        return [node for node in self if node.is_running]

    @property
    def bootstrap(self) -> str:
        return ",".join(node.address() for node in self)

    # --- what a client sees

    def describe(self, node: BrokerProcess | None = None) -> DescribeClusterResponse:
        with RawClient((node or self.running[0]).address()) as client:
            response: DescribeClusterResponse = client.call(DescribeClusterRequest(), 1)
            return response

    def metadata(self, node: BrokerProcess | None = None) -> MetadataResponse:
        with RawClient((node or self.running[0]).address()) as client:
            response: MetadataResponse = client.call(MetadataRequest(topics=None), 12)
            return response

    def controller_id(self) -> int:
        """Who leads the metadata quorum, once all running nodes agree on one that runs."""

        def agreed() -> int | None:
            seen = {self.describe(node).controller_id for node in self.running}
            running = {node.node_id for node in self.running}
            return seen.pop() if len(seen) == 1 and seen <= running else None

        return wait_for("agreement on a controller", agreed)

    def wait_for_brokers(self, *node_ids: int) -> None:
        """Every running node shows exactly these as live."""
        wanted = sorted(node_ids)

        def shown() -> bool:
            lists = [sorted(broker.broker_id for broker in self.describe(node).brokers) for node in self.running]
            return all(ids == wanted for ids in lists)

        wait_for(f"brokers {wanted} everywhere", shown)
