"""What admin calls take and give."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from uuid import UUID

from broker_engine.client.config import BrokerAddress
from broker_engine.security.scram import ScramVerifier


@dataclass(frozen=True, slots=True)
class NewTopic:
    name: str
    partitions: int = -1
    """-1: the broker's default."""
    replication_factor: int = -1
    configs: Mapping[str, str] = field(default_factory=dict)
    assignments: Mapping[int, Sequence[int]] = field(default_factory=dict)
    """Partition -> brokers, instead of the two numbers."""


@dataclass(frozen=True, slots=True)
class CreatedTopic:
    name: str
    topic_id: UUID
    partitions: int
    replication_factor: int
    configs: Mapping[str, str | None]


class ResourceType(IntEnum):
    TOPIC = 2
    BROKER = 4


@dataclass(frozen=True, slots=True)
class ConfigResource:
    type: ResourceType
    name: str

    @classmethod
    def topic(cls, name: str) -> ConfigResource:
        return cls(ResourceType.TOPIC, name)

    @classmethod
    def broker(cls, node: int) -> ConfigResource:
        return cls(ResourceType.BROKER, str(node))


class ConfigSource(IntEnum):
    UNKNOWN = 0
    TOPIC = 1
    DYNAMIC_BROKER = 2
    DYNAMIC_DEFAULT_BROKER = 3
    STATIC_BROKER = 4
    DEFAULT = 5


@dataclass(frozen=True, slots=True)
class ConfigEntry:
    name: str
    value: str | None
    source: int
    """A ConfigSource, or a number that a newer broker made up."""
    is_read_only: bool
    is_sensitive: bool
    documentation: str | None = None

    @property
    def is_default(self) -> bool:
        return self.source == ConfigSource.DEFAULT


class ConfigOperation(IntEnum):
    SET = 0
    DELETE = 1
    APPEND = 2
    SUBTRACT = 3


@dataclass(frozen=True, slots=True)
class ConfigChange:
    name: str
    value: str | None
    operation: ConfigOperation = ConfigOperation.SET


@dataclass(frozen=True, slots=True)
class ClusterDescription:
    cluster_id: str
    controller_id: int
    brokers: Mapping[int, BrokerAddress]
    """Those that are live."""
    racks: Mapping[int, str | None] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Reassignment:
    """A move under way: `replicas` holds the old and the new ones."""

    replicas: tuple[int, ...]
    adding: tuple[int, ...]
    removing: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class QuorumReplica:
    node: int
    directory_id: UUID
    log_end_offset: int
    caught_up_ms: int
    """When it last had everything; -1 where that is not known."""


@dataclass(frozen=True, slots=True)
class QuorumDescription:
    leader: int
    epoch: int
    high_watermark: int
    voters: tuple[QuorumReplica, ...]
    observers: tuple[QuorumReplica, ...]


@dataclass(frozen=True, slots=True)
class Tenant:
    tenant_id: str
    cluster_id: str
    policy_json: str = "{}"
    deleted: bool = False


@dataclass(frozen=True, slots=True)
class Credential:
    username: str
    tenant_id: str = ""
    principal: str = ""
    verifiers: tuple[ScramVerifier, ...] = ()
    deleted: bool = False


@dataclass(frozen=True, slots=True)
class DescribedTenant:
    tenant_id: str
    cluster_id: str
    policy_json: str
    topic_count: int
    partition_count: int


@dataclass(frozen=True, slots=True)
class DescribedMechanism:
    mechanism: int
    """1 = SCRAM-SHA-256, 2 = SCRAM-SHA-512."""
    salt: bytes
    iterations: int
    stored_key: bytes = field(repr=False)


@dataclass(frozen=True, slots=True)
class DescribedCredential:
    username: str
    tenant_id: str
    principal: str
    mechanisms: tuple[DescribedMechanism, ...]


@dataclass(frozen=True, slots=True)
class DescribedTenants:
    tenants: Mapping[str, DescribedTenant]
    credentials: Mapping[str, DescribedCredential]
