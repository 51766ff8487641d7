"""Is the cluster as it should be when nothing is wrong? Each answer names what is missing, or None."""

from __future__ import annotations

from broker_engine.simulator.cluster import SimCluster


class Settling:
    def __init__(self, cluster: SimCluster) -> None:
        self._cluster = cluster

    def is_formed(self) -> str | None:
        for node in self._cluster.nodes.values():
            if not node.is_ready or node.broker is None:
                return f"{node.name} is not ready"
        return None

    def is_settled(self) -> str | None:
        """Everybody up and unfenced, one image, a leader and a full ISR for every partition."""
        missing = self.is_formed()
        if missing is not None:
            return missing
        images = [node.broker.image for node in self._cluster.nodes.values() if node.broker is not None]
        newest = max(images, key=lambda image: image.next_offset)
        if any(image.next_offset != newest.next_offset for image in images):
            return f"nodes are at different offsets of the metadata: {[image.next_offset for image in images]}"
        for node in self._cluster.nodes.values():
            broker = newest.brokers.get(node.id)
            if broker is None or broker.is_fenced:
                return f"{node.name} is fenced"
        for topic in newest.topics.values():
            for index, state in topic.partitions.items():
                if state.leader < 0 or sorted(state.isr) != sorted(state.replicas) or state.is_reassigning:
                    return f"{topic.name}-{index}: {state}"
        return None
