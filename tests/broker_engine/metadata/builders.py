"""Small clusters for the tests of this folder: real images, made by replaying real records."""

from __future__ import annotations

from collections.abc import Iterator
from uuid import UUID

from broker_engine.config import BrokerConfig
from broker_engine.metadata.image import EMPTY_IMAGE, MetadataImage
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


def after(image: MetadataImage, records: Iterator[Record] | tuple[Record, ...]) -> MetadataImage:
    return image.replay(records, image.next_offset)
