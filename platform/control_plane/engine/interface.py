"""What the control plane asks of an engine. Nothing above this seam knows what stands behind it.

All calls block the calling thread for at most `timeout_s` and are safe from any thread. They raise
`EngineUnavailable` (try again later) or `EngineRefused` (the engine understood and said no; trying the same again is
useless). Names are a pair, tenant and short name: how an engine joins them is its own affair.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Protocol
from uuid import UUID

from control_plane.engine.cluster import ClusterEngine
from control_plane.engine.groups import GroupsEngine


class EngineError(Exception):
    """The message may be shown to the tenant: it names no other tenant and no physical name."""


class EngineUnavailable(EngineError):  # noqa: N818 (a state of the engine, not a kind of error)
    """No answer, or one that passes: a broker is down, a leader is moving."""


class EngineRefused(EngineError):  # noqa: N818 (an answer)
    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code  # Kafka's name of the error, e.g. INVALID_CONFIG


@dataclass(frozen=True, slots=True, order=True)
class TopicName:
    tenant: str
    name: str


@dataclass(frozen=True, slots=True)
class TopicSpec:
    partitions: int
    replication_factor: int | None = None  # None: the engine's default
    configs: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class TopicView:
    name: TopicName
    topic_id: UUID
    partitions: int
    replication_factor: int
    configs: Mapping[str, str]  # only what is set on the topic itself


@dataclass(frozen=True, slots=True)
class PartitionView:
    partition: int
    leader: int | None
    leader_epoch: int
    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    log_start_offset: int | None
    high_watermark: int | None


@dataclass(frozen=True, slots=True)
class TenantView:
    """A tenant as the engine keeps it. The policy holds what the engine itself enforces when Kafka clients ask."""

    tenant: str
    cluster_id: str
    policy: Mapping[str, object]


@dataclass(frozen=True, slots=True)
class Verifier:
    mechanism: str  # SCRAM-SHA-256 or SCRAM-SHA-512
    salt: bytes
    iterations: int
    stored_key: bytes
    server_key: bytes


@dataclass(frozen=True, slots=True)
class Credential:
    username: str
    tenant: str
    principal: str
    verifiers: tuple[Verifier, ...]


@dataclass(frozen=True, slots=True)
class CredentialView:
    """What the engine tells about a credential: enough to see whether it is the one we want there."""

    username: str
    tenant: str
    stored_keys: frozenset[tuple[str, bytes]]  # (mechanism, stored key)


@dataclass(frozen=True, slots=True)
class Inventory:
    tenants: Mapping[str, TenantView]
    credentials: Mapping[str, CredentialView]


class Engine(Protocol):
    @property
    def kind(self) -> str: ...

    @property
    def cluster(self) -> ClusterEngine: ...

    @property
    def groups(self) -> GroupsEngine: ...

    def create_topic(self, name: TopicName, spec: TopicSpec, *, timeout_s: float) -> bool:
        """Whether the topic was made now. One that is there already is no error: the caller compares and mends."""

    def delete_topic(self, name: TopicName, *, timeout_s: float) -> None:
        """A topic that is not there is no error."""

    def add_partitions(self, name: TopicName, total: int, *, timeout_s: float) -> None: ...

    def alter_configs(
        self, name: TopicName, *, put: Mapping[str, str], remove: Iterable[str], timeout_s: float
    ) -> None: ...

    def describe_topic(self, name: TopicName, *, timeout_s: float) -> TopicView | None: ...

    def describe_topics(self, *, timeout_s: float) -> list[TopicView]:
        """Every tenant's topics; the engine's own internal ones are left out."""

    def describe_partitions(self, name: TopicName, *, timeout_s: float) -> list[PartitionView] | None: ...

    def wait_until_shown(self, name: TopicName, partitions: int, *, timeout_s: float) -> bool:
        """Whether every live broker's own metadata came to show exactly that many partitions (0: none) in time."""

    def inventory(self, *, timeout_s: float) -> Inventory: ...

    def push_tenants(self, tenants: Iterable[TenantView], *, timeout_s: float) -> None: ...

    def push_credentials(self, credentials: Iterable[Credential], *, timeout_s: float) -> None: ...

    def remove_credentials(self, usernames: Iterable[str], *, timeout_s: float) -> None: ...
