"""What must hold at every moment, looked up in the brokers' own cores after the events of a broker.

Numbers are the rules of reliability.md section 2. What a client could see is the history checker's business.
"""

from __future__ import annotations

from broker_engine.server.broker import Broker
from broker_engine.simulator.cluster import SimCluster
from broker_engine.simulator.metadata_oracle import MetadataOracle
from broker_engine.simulator.partition_oracle import PartitionOracle
from broker_engine.simulator.quorum_oracle import QuorumOracle
from broker_engine.simulator.sim_process import Process

FOUND_MAX = 20


class Oracles:
    def __init__(self, cluster: SimCluster, losing_topics: frozenset[str]) -> None:
        """`losing_topics`: may lose acknowledged records, by their settings and this run's faults."""
        self.found: list[tuple[str, str]] = []
        self._cluster = cluster
        self._nodes = {}
        self.quorum = QuorumOracle(cluster, self.violate)
        self.metadata = MetadataOracle(cluster, self.violate)
        self.partitions = PartitionOracle(cluster, self.metadata, losing_topics, self.violate)
        for node in cluster.nodes.values():
            self._nodes[node.name] = node

    def violate(self, rule: str, text: str) -> None:
        if len(self.found) < FOUND_MAX and (rule, text) not in self.found:
            self.found.append((rule, text))
            self._cluster.note(f"VIOLATION {rule}: {text}")

    def on_events(self, process: Process) -> None:
        node = self._nodes.get(process.name.partition(".")[0])
        if node is None or node.process is not process or node.broker is None:
            return
        broker = node.broker
        self.quorum.look_at(node, broker)
        if broker.has_joined:
            self.metadata.look_at(node.id, broker)
            self.partitions.look_at(node.id, broker)

    def running_brokers(self) -> dict[int, Broker]:
        return {node.id: node.broker for node in self._cluster.nodes.values() if node.is_ready and node.broker}
