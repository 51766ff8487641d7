"""Is the cluster as it should be when nothing is wrong? Each answer names what is missing, or None."""

from __future__ import annotations

from bisect import bisect
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import groupby

from broker_engine.client.model import TopicPartition
from broker_engine.log.damage import Hole
from broker_engine.metadata.image import MetadataImage, PartitionImage, TopicImage
from broker_engine.server.local_partition import LocalPartition
from broker_engine.simulator.cluster import SimCluster
from broker_engine.simulator.node import SimNode
from broker_engine.simulator.plans import TopicPlan


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
        """Everybody up, brokers unfenced, one image, a leader and a full ISR for every partition."""
        missing = self.is_formed()
        if missing is not None:
            return missing
        images = self._images()
        newest = max(images, key=_offset)
        if any(image.next_offset != newest.next_offset for image in images):
            return f"nodes are at different offsets of the metadata: {[image.next_offset for image in images]}"
        for node in self._cluster.brokers:
            broker = newest.brokers.get(node.id)
            if broker is None or broker.is_fenced:
                return f"{node.name} is fenced"
            if node.broker is not None and node.broker.disk_floor.is_low:
                return f"{node.name} has not noticed yet that there is room on its disk"
        if (rotten := self._rotten(newest)) is not None:
            return rotten
        for topic in newest.topics.values():
            for index, state in topic.partitions.items():
                if state.leader < 0 and self._may_be_gone(topic, state):
                    continue
                if state.leader < 0 or sorted(state.isr) != sorted(state.replicas) or state.is_reassigning:
                    return f"{topic.name}-{index}: {state}"
        return None

    def is_stable(self) -> str | None:
        """Rule 37: whoever began a transaction is gone, so nothing is open any more."""
        missing = self.is_formed()  # a kill that was to come with a certain call may come late
        if missing is not None:
            return missing
        for node in self._cluster.brokers:
            for local in node.broker.partitions.all() if node.broker is not None else ():
                if local.is_leader and local.core.last_stable_offset < local.core.high_watermark:
                    ends = (local.core.last_stable_offset, local.core.high_watermark)
                    return f"{local.name}-{local.index} on {node.name} is stable to {ends[0]} of {ends[1]}"
        return None

    def is_mended(self) -> str | None:
        """At the end: the scrubber may have come to it after everything else was well."""
        missing = self.is_formed()
        return missing if missing is not None else self._rotten(max(self._images(), key=_offset))

    def _images(self) -> list[MetadataImage]:
        return [node.broker.image for node in self._cluster.nodes.values() if node.broker is not None]

    def _rotten(self, newest: MetadataImage) -> str | None:
        """F13: what others have is put in its place, a segment at a time."""
        for node, local, holes in self._damaged_segments():
            if all(self._is_sound_elsewhere(newest, local, hole) for hole in holes):
                return f"{node.name} has not mended {local.name}-{local.index}: {holes}"
        return None

    def is_beyond_help(self) -> str | None:
        """A leader whose copy is damaged where nobody has it, of a topic that may lose records: none can follow it."""
        newest = max(self._images(), key=_offset)
        for node, local, holes in self._damaged_segments():
            lost = [hole for hole in holes if not self._is_sound_elsewhere(newest, local, hole)]
            if local.is_leader and lost and local.name.name in self._losing_topics:
                return f"{node.name} leads {local.name}-{local.index}, and nobody has {lost}"
        return None

    def _damaged_segments(self) -> Iterator[tuple[SimNode, LocalPartition, list[Hole]]]:
        for node in self._cluster.brokers:
            for local in node.broker.partitions.all() if node.broker is not None else ():
                for _, holes in groupby(local.log.holes, key=partial(_segment_number, local.log.segment_bases)):
                    yield node, local, list(holes)

    def _is_sound_elsewhere(self, newest: MetadataImage, local: LocalPartition, hole: Hole) -> bool:
        return any(_is_sound(local, copy, hole) for copy in self._copies(local, _replicas(newest, local)))

    def _copies(self, local: LocalPartition, replicas: Sequence[int]) -> Iterator[LocalPartition]:
        for node in self._cluster.brokers:
            copy = node.broker and node.broker.partitions.find(local.topic_id, local.index)
            if copy and node.id in replicas:
                yield copy

    def _may_be_gone(self, topic: TopicImage, state: PartitionImage) -> bool:
        """An empty disk is never elected: where it was the only one, somebody has to say what is to become of it."""
        if len(state.replicas) == 1 and self._cluster.wiped_nodes.get(state.replicas[0]):
            return True
        return topic.name.name in self._losing_topics and not state.isr and not state.elr

    def led_topics(self, topics: Sequence[TopicPlan]) -> list[TopicPlan]:
        """Those of which every partition has a leader."""
        lost = {target.topic for target in self.lost_partitions()}
        is_any_wiped = any(number in self._cluster.swarm.broker_ids for number in self._cluster.wiped_nodes)
        gone = {topic.name for topic in topics if is_any_wiped and topic.replication_factor == 1}
        return [topic for topic in topics if topic.name not in lost | gone]

    def leader_epochs(self) -> dict[tuple[str, int], int]:
        """As the newest image has them."""
        topics = max(self._images(), key=_offset).topics.values()
        return {(topic.name.name, index): p.leader_epoch for topic in topics for index, p in topic.partitions.items()}

    def lost_partitions(self) -> list[TopicPartition]:
        """Nobody who has all of it may lead: an operator has to choose."""
        newest = max(self._images(), key=_offset, default=None)
        found = []
        for topic in newest.topics.values() if newest is not None else ():
            for index, state in topic.partitions.items():
                if state.leader < 0 and topic.name.name in self._losing_topics:
                    found.append(TopicPartition(topic.name.name, index))
        return found


def _segment_number(bases: Sequence[int], hole: Hole) -> int:
    return bisect(bases, hole.start_offset)


def _replicas(image: MetadataImage, local: LocalPartition) -> Sequence[int]:
    topic = image.topics.get(local.topic_id)
    return topic.partitions[local.index].replicas if topic is not None else ()


def _is_sound(local: LocalPartition, copy: LocalPartition, hole: Hole) -> bool:
    """Has it what is damaged there, whole, and of the same history?"""
    log = copy.log
    is_there = log.log_start_offset <= hole.start_offset and hole.end_offset <= log.log_end_offset
    is_whole = all(
        other.end_offset <= hole.start_offset or hole.end_offset <= other.start_offset for other in log.holes
    )
    is_committed = hole.end_offset <= min(local.high_watermark, copy.high_watermark)
    is_same = is_committed or log.epoch_of(hole.start_offset) == local.log.epoch_of(hole.start_offset)
    return is_there and is_whole and is_same


def _offset(image: MetadataImage) -> int:
    return image.next_offset
