"""Is the cluster as it should be when nothing is wrong? Each answer names what is missing, or None."""

from __future__ import annotations

from broker_engine.simulator.cluster import SimCluster


class Settling:
    def __init__(self, cluster: SimCluster) -> None:
        self._cluster = cluster

    def is_formed(self) -> str | None:
        for node in self._cluster.nodes.values():
            if not node.is_ready:
                return f"{node.name} is not ready"
        return None

    def is_settled(self) -> str | None:
        return self.is_formed()
