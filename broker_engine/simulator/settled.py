"""Is the cluster as it should be when nothing is wrong? Each answer names what is missing, or None."""

from __future__ import annotations

from collections.abc import Sequence

from broker_engine.client.model import TopicPartition
from broker_engine.metadata.image import MetadataImage, PartitionImage, TopicImage
from broker_engine.simulator.cluster import SimCluster
from broker_engine.simulator.swarm import TopicPlan


class Settling:
    def __init__(self, cluster: SimCluster, losing_topics: frozenset[str]) -> None:
        """`losing_topics` may be left without a leader: all copies may be gone."""
        self._cluster = cluster
        self._losing_topics = losing_topics

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
            if node.broker is not None and node.broker.disk_floor.is_low:
                return f"{node.name} has not noticed yet that there is room on its disk"
        for topic in newest.topics.values():
            for index, state in topic.partitions.items():
                if state.leader < 0 and self._may_be_gone(topic, state):
                    continue
                if state.leader < 0 or sorted(state.isr) != sorted(state.replicas) or state.is_reassigning:
                    return f"{topic.name}-{index}: {state}"
        return None

    def _may_be_gone(self, topic: TopicImage, state: PartitionImage) -> bool:
        """An empty disk is never elected: where it was the only one, somebody has to say what is to become of it."""
        if len(state.replicas) == 1 and self._cluster.wiped_nodes.get(state.replicas[0]):
            return True
        return topic.name.name in self._losing_topics and not state.isr and not state.elr

    def led_topics(self, topics: Sequence[TopicPlan]) -> list[TopicPlan]:
        """Those of which every partition has a leader."""
        lost = {target.topic for target in self.lost_partitions()}
        gone = {topic.name for topic in topics if any(self._cluster.wiped_nodes) and topic.replication_factor == 1}
        return [topic for topic in topics if topic.name not in lost | gone]

    def lost_partitions(self) -> list[TopicPartition]:
        """Nobody who has all of it may lead: an operator has to choose."""
        newest = max(
            (node.broker.image for node in self._cluster.nodes.values() if node.broker), key=_offset, default=None
        )
        found = []
        for topic in newest.topics.values() if newest is not None else ():
            for index, state in topic.partitions.items():
                if state.leader < 0 and topic.name.name in self._losing_topics:
                    found.append(TopicPartition(topic.name.name, index))
        return found


def _offset(image: MetadataImage) -> int:
    return image.next_offset
