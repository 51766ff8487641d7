"""What must hold at every moment, looked up in the brokers' own cores."""

from __future__ import annotations

from broker_engine.simulator.cluster import SimCluster
from broker_engine.simulator.sim_loop import SimHandle


class Oracles:
    def __init__(self, cluster: SimCluster) -> None:
        self.found: list[tuple[str, str]] = []
        self._cluster = cluster

    def on_event(self, handle: SimHandle) -> None:
        pass

    def check_at_end(self) -> None:
        pass
