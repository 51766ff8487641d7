"""A proposal of moves, made of what any broker tells: the engine's own rule (`metadata/balance.py`) over our views."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from broker_engine.client.admin_model import ClusterDescription, Reassignment
from broker_engine.client.errors import KafkaError
from broker_engine.client.metadata import PartitionView, TopicView
from broker_engine.client.model import TopicPartition
from broker_engine.errors import BrokerError
from broker_engine.metadata.balance import propose_balance
from broker_engine.metadata.image import EMPTY_IMAGE, MetadataImage
from broker_engine.metadata.parts import BrokerImage, EndpointImage, PartitionImage, TopicImage
from broker_engine.names import ROOT, Name
from broker_engine.wire.primitives import NULL_UUID

NO_MOVES: Mapping[TopicPartition, Reassignment] = {}


def propose_moves(
    topics: Iterable[TopicView],
    cluster: ClusterDescription,
    *,
    brokers: Iterable[int],
    replication_factor: int | None = None,
    under_way: Mapping[TopicPartition, Reassignment] = NO_MOVES,
) -> dict[TopicPartition, tuple[int, ...]]:
    """New replicas for each partition that should move. `brokers` may hold replicas afterwards, and nobody else."""
    views = {Name(ROOT, topic.name): topic for topic in topics}
    image = _image(views, cluster, under_way)
    try:
        moves = propose_balance(image, brokers, replication_factor)
    except BrokerError as error:
        raise KafkaError(error.code, error.message) from error
    return {TopicPartition(move.name.name, move.partition): move.after for move in moves}


def _image(
    views: Mapping[Name, TopicView], cluster: ClusterDescription, under_way: Mapping[TopicPartition, Reassignment]
) -> MetadataImage:
    """As much of an image as the rule looks at. Names stay as the broker showed them, tenants and all."""
    topics = {
        view.topic_id: TopicImage(
            view.topic_id,
            name,
            {
                index: _partition(part, under_way.get(TopicPartition(view.name, index)))
                for index, part in view.partitions.items()
            },
            {},
        )
        for name, view in views.items()
    }
    brokers = {node: _broker(node, cluster) for node in cluster.brokers}
    return MetadataImage(EMPTY_IMAGE.next_offset, topics=topics, brokers=brokers)


def _partition(view: PartitionView, move: Reassignment | None) -> PartitionImage:
    return PartitionImage(
        replicas=view.replicas,
        isr=view.isr,
        elr=(),
        leader=view.leader,
        leader_epoch=view.leader_epoch,
        partition_epoch=0,
        adding=() if move is None else move.adding,
        removing=() if move is None else move.removing,
    )


def _broker(node: int, cluster: ClusterDescription) -> BrokerImage:
    address = cluster.brokers[node]
    endpoint = EndpointImage("", address.host, address.port, "")
    return BrokerImage(node, 0, NULL_UUID, cluster.racks.get(node), (endpoint,), is_fenced=False)
