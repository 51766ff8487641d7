"""Are all replicas of a partition the same bytes? Asked when clients are gone and every replica is in sync."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Sequence

from broker_engine.simulator.history.rows import Partition
from tests.chaos.cluster import Cluster
from tests.chaos.node import Node

SETTLE_S = 10.0


def differing_replicas(cluster: Cluster, partitions: Sequence[Partition]) -> list[str]:
    """One line for each partition whose replicas still differ after a while; empty = all alike."""
    deadline = time.monotonic() + SETTLE_S
    while differing := [line for partition in partitions if (line := _difference(cluster, partition))]:
        if time.monotonic() > deadline:
            break
        time.sleep(0.2)
    return differing


def _difference(cluster: Cluster, partition: Partition) -> str:
    copies = {node_id: _content(node, partition) for node_id, node in cluster.nodes.items()}
    held = {node_id: copy for node_id, copy in copies.items() if copy is not None}
    if len(set(held.values())) <= 1:
        return ""
    shown = ", ".join(f"{node_id}: {size} bytes {digest}" for node_id, (size, digest) in held.items())
    return f"the replicas of {partition[0]}-{partition[1]} differ: {shown}"


def _content(node: Node, partition: Partition) -> tuple[int, str] | None:
    folder = node.data_dir / f"{partition[0]}-{partition[1]}"
    if not folder.is_dir():
        return None
    content = b"".join(path.read_bytes() for path in sorted(folder.glob("*.log")))
    return len(content), hashlib.sha256(content).hexdigest()[:12]
