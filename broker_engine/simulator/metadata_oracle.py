"""The metadata and the controller's decisions: rules 16, 18, 19, 20, 21, 22, 25 after each event."""

from __future__ import annotations

import zlib
from collections.abc import Callable

from broker_engine.config import TopicConfig
from broker_engine.metadata.image import EMPTY_IMAGE, MetadataImage, PartitionImage, TopicImage
from broker_engine.metadata.parts import BrokerImage
from broker_engine.metadata.telemetry_topic import TELEMETRY_TOPIC
from broker_engine.server.broker import Broker
from broker_engine.simulator.cluster import SimCluster

NO_LEADER = -1
Violate = Callable[[str, str], None]


class MetadataOracle:
    def __init__(self, cluster: SimCluster, violate: Violate) -> None:
        self.newest: MetadataImage = EMPTY_IMAGE
        """The latest that any node has shown: it is committed, so it is the truth."""
        self._cluster = cluster
        self._violate = violate
        self._shown: dict[int, MetadataImage] = {}
        self._digests: dict[int, tuple[int, int]] = {}

    def look_at(self, node_id: int, broker: Broker) -> None:
        driver = broker.metadata
        # Replicas follow an image a moment before it is shown to clients.
        image, followed = driver.image, broker.partitions._image
        if followed.next_offset > image.next_offset:
            image = followed
        if image is not self._shown.get(node_id):
            self._shown[node_id] = image
            self._on_image(node_id, image, broker)

    def _on_image(self, node_id: int, image: MetadataImage, broker: Broker) -> None:
        digest = zlib.crc32(repr(_essence(image)).encode())
        known, first_node = self._digests.setdefault(image.next_offset, (digest, node_id))
        if known != digest:
            text = f"at offset {image.next_offset} node {node_id} and node {first_node} show different images"
            self._violate("25 metadata is the same everywhere", text)
        if image.next_offset > self.newest.next_offset:
            before, self.newest = self.newest, image
            self._on_newest(before, image, broker)

    def _on_newest(self, before: MetadataImage, image: MetadataImage, broker: Broker) -> None:
        has_same_brokers = before.brokers is image.brokers
        # Before that, who registered first is unfenced while it is alone, and fenced again if it is not ready by then.
        if not has_same_brokers and self._cluster.is_formed and not self._cluster.is_shaken:
            self._check_nobody_is_fenced(before, image)
        if not has_same_brokers:
            self._check_new_lives(before, image)
        for topic_id, topic in image.topics.items():
            old = before.topics.get(topic_id)
            if old is topic and has_same_brokers:
                continue
            min_insync = _min_insync(topic, broker)
            for index, state in topic.partitions.items():
                self._check_state(f"{topic.name}-{index}", state, image, min_insync)
                earlier = old.partitions.get(index) if old is not None else None
                if earlier is not None and earlier != state:
                    self._check_step(f"{topic.name}-{index}", earlier, state, topic, min_insync)

    def _check_nobody_is_fenced(self, before: MetadataImage, image: MetadataImage) -> None:
        """F17: nothing happened but jumps of clocks."""
        for broker in image.brokers.values():
            known = before.brokers.get(broker.id)
            if known is not None and known.epoch == broker.epoch and broker.is_fenced and not known.is_fenced:
                self._violate("F17 clocks fence nobody", f"broker {broker.id} is fenced, though nothing happened to it")

    def _check_new_lives(self, before: MetadataImage, image: MetadataImage) -> None:
        """19: who comes back from a crash is in no ISR and may not be elected, until its leaders say otherwise. The
        only copy there is leads again, whatever it lost.
        """
        for broker in image.brokers.values():
            known = before.brokers.get(broker.id)
            is_new = known is not None and known.epoch != broker.epoch and broker.is_fenced
            if not is_new or self._cluster.nodes[broker.id].was_clean or not self._is_present_life(broker):
                continue
            for topic in image.topics.values():
                for index, state in topic.partitions.items():
                    if broker.id in (*state.isr, *state.elr) and len(state.replicas) > 1:
                        text = f"broker {broker.id} crashed, {topic.name}-{index} counts on it: {state}"
                        self._violate("19 a crashed broker is out of sync", text)

    def _is_present_life(self, registered: BrokerImage) -> bool:
        """What a former one asked for may be committed only now, when there are enough controllers again."""
        identity = getattr(self._cluster.nodes[registered.id].broker, "identity", None)  # made in the midst of a start
        return identity is not None and identity.incarnation_id == registered.incarnation_id

    def _check_state(self, name: str, state: PartitionImage, image: MetadataImage, min_insync: int) -> None:
        problems = []
        if state.leader != NO_LEADER and state.leader not in state.isr:
            problems.append("the leader is not in the ISR")
        if any(member not in state.replicas for member in (*state.isr, *state.elr)):
            problems.append("ISR and ELR are not among the replicas")
        if any(member in state.isr for member in state.elr):
            problems.append("ISR and ELR are not apart")
        if len(state.isr) >= min_insync and state.elr:
            problems.append("there is an ELR though the ISR is large enough")
        if state.leader != NO_LEADER:  # the last one in sync stays there when it is fenced, and nobody leads
            fenced = [member for member in state.isr if _is_fenced(image, member)]
            problems += [f"fenced broker {member} is in the ISR" for member in fenced]
        for problem in problems:
            self._violate("20 partition state", f"{name}: {problem}: {state}")

    def _is_leaving(self, node_id: int) -> bool:
        broker = self.newest.brokers.get(node_id)
        return broker is not None and broker.is_shutting_down

    def _check_step(
        self, name: str, old: PartitionImage, new: PartitionImage, topic: TopicImage, min_insync: int
    ) -> None:
        joined = [member for member in new.isr if member not in old.isr and self._is_leaving(member)]
        if joined and new.leader not in joined:
            self._violate("16 who shuts down does not join", f"{name}: {joined} from {old} to {new}")
        if new.partition_epoch <= old.partition_epoch:
            self._violate("18 every change counts up", f"{name}: {old} to {new}")
        if new.leader_epoch < old.leader_epoch or (new.leader != old.leader and new.leader_epoch == old.leader_epoch):
            self._violate("18 every change counts up", f"{name}: {old} to {new}")
        is_one_step = new.partition_epoch == old.partition_epoch + 1
        is_move = old.replicas != new.replicas and topic.name != TELEMETRY_TOPIC
        if is_move and len(new.isr) < min_insync <= len(old.isr) and is_one_step:
            self._violate("21 a move keeps enough in sync", f"{name}: {old} to {new}")
        # When all that were in sync crashed, the longest log of enough of them leads (metadata/recovery.py).
        recovered = () if old.isr or old.elr else old.last_known_elr
        is_known = new.leader in (NO_LEADER, old.leader, *old.isr, *old.elr, *recovered)
        is_clean = is_known or old.replicas != new.replicas
        if is_one_step and not is_clean and new.unclean_elections == old.unclean_elections:
            self._violate("22 no unclean election untold", f"{name}: {old} to {new}")


def _is_fenced(image: MetadataImage, node_id: int) -> bool:
    broker = image.brokers.get(node_id)
    return broker is None or broker.is_fenced


def _min_insync(topic: TopicImage, broker: Broker) -> int:
    resolved = TopicConfig.resolve(topic.configs, broker.config, replication_factor=topic.replication_factor)
    return resolved.min_insync_replicas


def _essence(image: MetadataImage) -> tuple[object, ...]:
    """What every node must agree on at an offset, in an order of its own: a snapshot and a log may differ in theirs."""
    topics = [
        (topic.id, topic.name, sorted(topic.partitions.items()), sorted(topic.configs.items()))
        for topic in sorted(image.topics.values(), key=lambda topic: topic.id)
    ]
    return (sorted(image.brokers.items()), topics, image.next_producer_id, image.voters)


def _first(pair: tuple[int, object]) -> int:
    return pair[0]
