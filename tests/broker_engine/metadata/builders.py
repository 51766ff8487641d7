"""Small clusters for the tests of this folder: real images, made by replaying real records."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any
from uuid import UUID

from broker_engine.config import BrokerConfig
from broker_engine.metadata.controller import IsrProposal, NewTopic, create_topics, register_broker
from broker_engine.metadata.decision import Decision
from broker_engine.metadata.image import EMPTY_IMAGE, MetadataImage
from broker_engine.metadata.parts import PartitionImage
from broker_engine.metadata.records import BrokerRegistrationRecord, EndpointField, Record, TenantRecord
from broker_engine.names import ROOT, Name

CONFIG = BrokerConfig.load()


class Ids:
    """A random source that counts."""

    def __init__(self, first: int = 1) -> None:
        self._numbers = iter(range(first, 1 << 30))

    def __call__(self) -> UUID:
        return UUID(int=next(self._numbers) << 64 | 0)


def broker(
    broker_id: int, *, rack: str | None = None, host: str | None = None, fenced: bool = False
) -> BrokerRegistrationRecord:
    endpoint = EndpointField(name="default", host=host or f"host-{broker_id}", port=9092)
    return BrokerRegistrationRecord(
        broker_id=broker_id, incarnation_id=UUID(int=broker_id), rack=rack, endpoints=[endpoint], fenced=fenced
    )


def cluster(broker_count: int = 1, *more: Record) -> MetadataImage:
    return EMPTY_IMAGE.replay([*(broker(n) for n in range(1, broker_count + 1)), *more], 0)


def tenant(tenant_id: str, policy_json: str = "{}") -> TenantRecord:
    return TenantRecord(tenant=tenant_id, cluster_id=f"lkc-{tenant_id}", policy_json=policy_json)


def root(name: str) -> Name:
    return Name(ROOT, name)


def demo(name: str) -> Name:
    return Name("demo", name)


def after(image: MetadataImage, records: Iterable[Record]) -> MetadataImage:
    return image.replay(records, image.next_offset)


def register(image: MetadataImage, broker_id: int, **given: Any) -> Decision[None]:
    """A new life; everything that a test does not care about has a value."""
    wanted: dict[str, Any] = {
        "incarnation_id": UUID(int=image.next_offset + 1000),
        "endpoints": [],
        "config": CONFIG,
        "new_id": Ids(77_000),
        "directory_id": UUID(int=broker_id),
        **given,
    }
    return register_broker(image, broker_id=broker_id, **wanted)


def with_topic(
    image: MetadataImage, *replicas: Sequence[int], name: Name | None = None, **configs: str
) -> MetadataImage:
    """A topic "t" with these replicas per partition."""
    new = NewTopic(
        name or root("t"),
        assignments=list(enumerate(map(tuple, replicas))),
        configs={key.replace("_", "."): value for key, value in configs.items()},
    )
    decision = create_topics(image, [new], config=CONFIG, new_id=Ids(image.next_offset + 500))
    assert decision.results[0].error_message is None
    return after(image, decision.records)


def partition_of(image: MetadataImage, index: int = 0, name: Name | None = None) -> PartitionImage:
    topic = image.topic(name or root("t"))
    assert topic is not None
    return topic.partitions[index]


def proposal(image: MetadataImage, *isr: int, index: int = 0, **changed: Any) -> IsrProposal:
    """What the leader of t-0 would propose now."""
    topic = image.topic(root("t"))
    assert topic is not None
    partition = topic.partitions[index]
    wanted: dict[str, Any] = {
        "topic_id": topic.id,
        "partition": index,
        "leader_epoch": partition.leader_epoch,
        "partition_epoch": partition.partition_epoch,
        "isr": [(member, image.brokers[member].epoch) for member in isr],
        **changed,
    }
    return IsrProposal(**wanted)
