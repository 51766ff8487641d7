"""A cluster of real brokers on loopback: `with Cluster(folder, 3) as cluster:`.

With `has_links` each node reaches each other by a proxy of that pair's own, so that any direction can be cut. With
`has_client_links` clients come by proxies too. Metadata is asked of one node by a bare socket: what that node knows.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

from confluent_kafka.admin import AdminClient, NewTopic

from broker_engine.simulator.history.rows import Partition
from tests.chaos.asking import (
    Replication,
    ask_broker_count,
    ask_quorum_leader,
    ask_replication,
    newest_leader,
    what_is_missing,
)
from tests.chaos.link import Link, Links, Way
from tests.chaos.node import Node
from tests.ports import own_port

POLL_S = 0.05
WHOLE_TIMEOUT_S = 60.0
ADMIN_TIMEOUT_S = 30.0


class NotWhole(AssertionError):
    """Leaders or in-sync replicas were still missing when the time was up."""


@dataclass(slots=True)
class Cluster:
    folder: Path
    broker_count: int = 3
    settings: Mapping[str, str] = field(default_factory=dict)
    has_links: bool = False
    has_client_links: bool = False
    environment: Mapping[int, Mapping[str, str]] = field(default_factory=dict)
    """Extra variables by node."""
    nodes: dict[int, Node] = field(default_factory=dict, init=False)
    links: dict[tuple[int, int], Link] = field(default_factory=dict, init=False)
    """From node, to node; from 0: clients."""
    _ports: dict[int, int] = field(default_factory=dict, init=False)
    _controller_ports: dict[int, int] = field(default_factory=dict, init=False)
    _proxies: Links = field(default_factory=Links, init=False)

    def __post_init__(self) -> None:
        ids = range(1, self.broker_count + 1)
        secret = secrets.token_urlsafe(32)
        self._ports = {node_id: own_port() for node_id in ids}
        self._controller_ports = {node_id: own_port() for node_id in ids}
        for node_id in ids:
            variables = {"HIGHWATER_CLUSTER_SECRET": secret, **self.environment.get(node_id, {})}
            self.nodes[node_id] = Node(node_id, self.folder / f"node-{node_id}", self._command(node_id), variables)

    def _command(self, node_id: int) -> list[str]:
        command = ["--node-id", str(node_id), "--listen", f"default=127.0.0.1:{self._ports[node_id]}"]
        if self.broker_count > 1:
            command += ["--quorum", ",".join(self._quorum(node_id))]
        settings = dict(self.settings)
        if self.has_client_links:
            settings["advertised.listeners"] = f"default=127.0.0.1:{self._link(0, node_id).port}"
        for name, value in settings.items():
            command += ["--set", f"{name}={value}"]
        return command

    def _quorum(self, node_id: int) -> Iterable[str]:
        """Its own address as it is; the others' as it shall reach them."""
        for other, port in self._controller_ports.items():
            is_direct = other == node_id or not self.has_links
            yield f"{other}@127.0.0.1:{port if is_direct else self._link(node_id, other).port}"

    def _link(self, source: int, target: int) -> Link:
        if (source, target) not in self.links:
            port = self._ports[target] if source == 0 else self._controller_ports[target]
            self.links[source, target] = self._proxies.add(own_port(), ("127.0.0.1", port))
        return self.links[source, target]

    # -- life

    def __enter__(self) -> Self:
        try:
            return self.start()
        except BaseException:
            self.close()
            raise

    def __exit__(self, *_: object) -> None:
        self.close()

    def start(self) -> Self:
        self.launch(self.nodes)
        deadline = time.monotonic() + WHOLE_TIMEOUT_S
        while counts := self._incomplete():
            if time.monotonic() > deadline:
                raise NotWhole(f"after {WHOLE_TIMEOUT_S:.0f} s nodes know so many brokers: {counts}")
            time.sleep(POLL_S)
        return self

    def _incomplete(self) -> dict[int, int]:
        """Which nodes do not know all brokers, and how many they know."""
        counts = {node_id: ask_broker_count(port) for node_id, port in self._ports.items()}
        return {node_id: count for node_id, count in counts.items() if count < self.broker_count}

    def close(self) -> None:
        for node in self.nodes.values():
            if node.is_running:
                node.kill()
        self._proxies.close()

    def launch(self, node_ids: Iterable[int]) -> None:
        """All at once, then waits for each: a new cluster forms only when every node is there."""
        for node_id in node_ids:
            for link in self._links_to(node_id):
                link.admit()
            self.nodes[node_id].launch()
        for node_id in node_ids:
            self.nodes[node_id].wait_until_ready()

    def kill(self, node_id: int) -> None:
        self.nodes[node_id].kill()
        self._refuse(node_id)

    def terminate(self, node_id: int) -> int:
        code = self.nodes[node_id].terminate()
        self._refuse(node_id)
        return code

    def _refuse(self, node_id: int) -> None:
        for link in self._links_to(node_id):
            link.refuse()

    def _links_to(self, node_id: int) -> list[Link]:
        return [link for (_, target), link in self.links.items() if target == node_id]

    # -- the network

    def cut(self, source: int, target: int) -> None:
        """Nothing that `source` says reaches `target`; the other way stays as it is."""
        self._set_ways(source, target, Way.HOLD)

    def heal(self) -> None:
        for link in self.links.values():
            link.set()

    def _set_ways(self, source: int, target: int, way: Way) -> None:
        """Connections that `source` opened carry it forward, those that `target` opened carry it as answers."""
        self.links[source, target].set_way("forward", way)
        self.links[target, source].set_way("backward", way)

    # -- what clients use

    @property
    def bootstrap(self) -> str:
        return ",".join(f"127.0.0.1:{self.client_port(node_id)}" for node_id in self.nodes)

    def client_port(self, node_id: int) -> int:
        return self.links[0, node_id].port if self.has_client_links else self._ports[node_id]

    @property
    def addresses(self) -> list[str]:
        """Of those that run, without proxies."""
        return [f"127.0.0.1:{self._ports[node_id]}" for node_id in self.running]

    @property
    def running(self) -> list[int]:
        return [node_id for node_id, node in self.nodes.items() if node.is_running]

    def admin(self) -> AdminClient:
        return AdminClient({"bootstrap.servers": self.bootstrap, "log_level": 0})

    def create_topic(
        self, name: str, partition_count: int, *, replication_factor: int | None = None, **configs: str
    ) -> tuple[Partition, ...]:
        """Config names with underscores for dots. Waits until every replica is in sync."""
        factor = replication_factor or min(3, self.broker_count)
        dotted = {key.replace("_", "."): value for key, value in configs.items()}
        topic = NewTopic(name, partition_count, factor, config=dotted)
        admin = self.admin()
        admin.create_topics([topic], request_timeout=ADMIN_TIMEOUT_S)[name].result(ADMIN_TIMEOUT_S)
        self.wait_until_whole([name])
        return tuple((name, number) for number in range(partition_count))

    def delete_topics(self, names: Sequence[str]) -> None:
        admin = self.admin()
        for future in admin.delete_topics(list(names), request_timeout=ADMIN_TIMEOUT_S).values():
            future.result(ADMIN_TIMEOUT_S)

    # -- what nodes know

    def known_to(self, node_id: int, partition: Partition) -> Replication | None:
        """None where the node does not answer, or does not know the partition."""
        return ask_replication(self._ports[node_id], partition[0]).get(partition[1])

    def all_known_to(self, node_id: int, topic: str) -> list[Replication]:
        """Of every partition; empty where the node does not answer."""
        return list(ask_replication(self._ports[node_id], topic).values())

    def leader_of(self, partition: Partition) -> int:
        return newest_leader([self._ports[node_id] for node_id in self.running], *partition)

    def wait_until_whole(self, topics: Sequence[str], timeout_s: float = WHOLE_TIMEOUT_S) -> float:
        """Until every node knows a leader and a full ISR of every partition; how long that took."""
        started = time.monotonic()
        while missing := what_is_missing(self._ports, list(topics)):
            if time.monotonic() - started > timeout_s:
                raise NotWhole(f"after {timeout_s:.0f} s: {missing}")
            time.sleep(POLL_S)
        return time.monotonic() - started

    def controller_id(self) -> int:
        """The leader of the metadata quorum; -1 where nobody who answers knows one."""
        return max((ask_quorum_leader(self._ports[node_id]) for node_id in self.running), default=(-1, -1))[1]
