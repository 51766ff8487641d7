"""What the client knows of the cluster: brokers, topics, leaders. Pure; `cluster.py` asks for what is missing here."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from uuid import UUID

from broker_engine.client.config import BrokerAddress
from broker_engine.client.errors import known_code
from broker_engine.client.model import TopicPartition
from broker_engine.errors import ErrorCode
from broker_engine.ids import NO_LEADER, NO_TOPIC_ID
from broker_engine.wire.messages.metadata import MetadataResponse, MetadataResponsePartition, MetadataResponseTopic


@dataclass(frozen=True, slots=True)
class PartitionView:
    partition: int
    leader: int
    """Node id, or -1 while there is none."""
    leader_epoch: int
    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    offline: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class TopicView:
    name: str
    topic_id: UUID
    partitions: Mapping[int, PartitionView]
    is_internal: bool = False
    seen_ms: int = 0
    led: frozenset[int] = frozenset()
    """The partitions that have a leader."""

    @property
    def partition_count(self) -> int:
        return len(self.partitions)


@dataclass(frozen=True, slots=True)
class ClusterView:
    cluster_id: str | None
    controller_id: int
    brokers: Mapping[int, BrokerAddress]
    topics: Mapping[str, TopicView]


class MetadataCache:
    """By topic. A topic that the broker refused is remembered with its code until it is asked for again."""

    def __init__(self, *, age_ms_max: int) -> None:
        self._age_ms_max = age_ms_max
        self._topics: dict[str, TopicView] = {}
        self._names: dict[UUID, str] = {}
        self._refusals: dict[str, ErrorCode] = {}
        self._stale: dict[str, None] = {}
        self.brokers: dict[int, BrokerAddress] = {}
        self.cluster_id: str | None = None
        self.controller_id = -1

    def topic(self, name: str) -> TopicView | None:
        return self._topics.get(name)

    def refusal(self, name: str) -> ErrorCode | None:
        return self._refusals.get(name)

    def name_of(self, topic_id: UUID) -> str | None:
        return self._names.get(topic_id)

    def partition(self, target: TopicPartition) -> PartitionView | None:
        topic = self._topics.get(target.topic)
        return topic.partitions.get(target.partition) if topic is not None else None

    def leader(self, target: TopicPartition) -> int | None:
        """The node to ask; None while there is no leader, or its address is unknown."""
        view = self.partition(target)
        return view.leader if view is not None and view.leader in self.brokers else None

    def mark_stale(self, name: str) -> None:
        """An answer showed that what we know is old: ask again before the age is reached."""
        self._stale[name] = None

    def is_fresh(self, name: str, now_ms: int) -> bool:
        topic = self._topics.get(name)
        return topic is not None and name not in self._stale and now_ms - topic.seen_ms < self._age_ms_max

    def due_topics(self, now_ms: int) -> list[str]:
        """Topics that should be asked for again; somebody needs those that are stale, even if they are gone now."""
        aged = (name for name in self._topics if not self.is_fresh(name, now_ms))
        return list(dict.fromkeys([*self._stale, *aged]))

    def forget(self, name: str) -> None:
        topic = self._topics.pop(name, None)
        if topic is not None:
            self._names.pop(topic.topic_id, None)
        self._refusals.pop(name, None)
        self._stale.pop(name, None)

    def apply(self, response: MetadataResponse, now_ms: int) -> None:
        """Take an answer in. Brokers are replaced as a whole, topics one by one."""
        self.brokers = {broker.node_id: BrokerAddress(broker.host, broker.port) for broker in response.brokers}
        self.cluster_id = response.cluster_id
        self.controller_id = response.controller_id
        for topic in response.topics:
            if topic.name is not None:
                self._apply_topic(topic.name, topic, now_ms)

    def _apply_topic(self, name: str, topic: MetadataResponseTopic, now_ms: int) -> None:
        self._stale.pop(name, None)
        if topic.error_code != ErrorCode.NONE:
            self.forget(name)
            self._refusals[name] = known_code(topic.error_code)
            return
        self._refusals.pop(name, None)
        known = self._topics.get(name)
        if known is not None and known.topic_id != topic.topic_id:
            self._names.pop(known.topic_id, None)
            known = None
        self._topics[name] = view_of(topic, now_ms, known)
        if topic.topic_id != NO_TOPIC_ID:
            self._names[topic.topic_id] = name


def view_of(topic: MetadataResponseTopic, now_ms: int, known: TopicView | None = None) -> TopicView:
    assert topic.name is not None
    old = known.partitions if known is not None else {}
    partitions = {
        part.partition_index: _newer(_partition_view(part), old.get(part.partition_index)) for part in topic.partitions
    }
    led = frozenset(index for index, part in partitions.items() if part.leader != NO_LEADER)
    return TopicView(topic.name, topic.topic_id, partitions, topic.is_internal, now_ms, led)


def _partition_view(part: MetadataResponsePartition) -> PartitionView:
    return PartitionView(
        part.partition_index,
        part.leader_id,
        part.leader_epoch,
        tuple(part.replica_nodes),
        tuple(part.isr_nodes),
        tuple(part.offline_replicas),
    )


def _newer(seen: PartitionView, known: PartitionView | None) -> PartitionView:
    """A broker that lags behind may answer with an older leader: its epoch gives it away."""
    is_older = known is not None and 0 <= seen.leader_epoch < known.leader_epoch
    return known if is_older and known is not None else seen


def cluster_view(response: MetadataResponse, now_ms: int) -> ClusterView:
    """One broker's own view, as it answered."""
    named = (topic for topic in response.topics if topic.name is not None and topic.error_code == ErrorCode.NONE)
    return ClusterView(
        response.cluster_id,
        response.controller_id,
        {broker.node_id: BrokerAddress(broker.host, broker.port) for broker in response.brokers},
        _by_name(view_of(topic, now_ms) for topic in named),
    )


def _by_name(views: Iterable[TopicView]) -> dict[str, TopicView]:
    return {view.name: view for view in views}
