"""What a MetadataImage is made of. All frozen; mappings in here are never changed after they are shared."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from uuid import UUID

from broker_engine.metadata.policy import NO_RULES, TenantPolicy
from broker_engine.names import Name
from broker_engine.security.scram import ScramMechanism, ScramVerifier
from broker_engine.wire.primitives import NULL_UUID

RECOVERED, RECOVERING = 0, 1
"""After an unclean election a leader is RECOVERING until it proposes its first ISR."""


@dataclass(frozen=True, slots=True)
class PartitionImage:
    replicas: tuple[int, ...]
    """The first one is the preferred leader."""
    isr: tuple[int, ...]
    elr: tuple[int, ...]
    leader: int
    """NO_LEADER (-1) while nobody may lead."""
    leader_epoch: int
    partition_epoch: int
    adding: tuple[int, ...] = ()
    """Replicas that a reassignment adds; they are among `replicas` already."""
    removing: tuple[int, ...] = ()
    """Replicas that are dropped once all of `adding` are in sync."""
    last_known_elr: tuple[int, ...] = ()
    """Who else was in sync last, the latest first: candidates of an unclean election."""
    leader_recovery_state: int = RECOVERED
    unclean_elections: int = 0
    """How often records may have been lost for the sake of having a leader."""

    @property
    def is_reassigning(self) -> bool:
        return bool(self.adding or self.removing)

    @property
    def replication_factor(self) -> int:
        """Without what a reassignment is still adding: else growing to three would ask for two in sync at once."""
        return len(self.replicas) - len(self.adding)


@dataclass(frozen=True, slots=True)
class TopicImage:
    id: UUID
    name: Name
    partitions: Mapping[int, PartitionImage]
    configs: Mapping[str, str]
    """Overrides only; `config.TopicConfig.resolve` gives what is in force."""

    @property
    def partition_count(self) -> int:
        return len(self.partitions)

    @property
    def replication_factor(self) -> int:
        """Of its first partition: a reassignment may make them differ for a while."""
        return self.partitions[0].replication_factor if self.partitions else 0


@dataclass(frozen=True, slots=True)
class Namespace:
    """One tenant's topics, apart from all others, so that a listing costs what it lists."""

    topics: Mapping[str, TopicImage] = field(default_factory=dict)
    """By short name."""
    by_collision_key: Mapping[str, str] = field(default_factory=dict)
    """What `names.collision_key` says of each topic, to its name."""
    partition_count: int = 0


@dataclass(frozen=True, slots=True)
class TenantImage:
    id: str
    cluster_id: str
    policy_json: str
    policy: TenantPolicy = NO_RULES


@dataclass(frozen=True, slots=True)
class CredentialImage:
    username: str
    tenant: str
    principal: str
    verifiers: Mapping[ScramMechanism, ScramVerifier]


@dataclass(frozen=True, slots=True)
class EndpointImage:
    name: str
    host: str
    port: int
    security_protocol: str


@dataclass(frozen=True, slots=True)
class BrokerImage:
    id: int
    epoch: int
    """The offset of its registration: one number per life of the process."""
    incarnation_id: UUID
    rack: str | None
    endpoints: tuple[EndpointImage, ...]
    is_fenced: bool
    directory_id: UUID = NULL_UUID
    """Of its data directory; null for one that registered before directories had ids."""
    controller_endpoint: EndpointImage | None = None
    """Where other nodes reach it; None for a node without a controller listener."""
    is_shutting_down: bool = False

    @property
    def is_active(self) -> bool:
        """May lead and be in sync."""
        return not self.is_fenced and not self.is_shutting_down

    @property
    def host(self) -> str:
        """For placement: replicas of one partition keep away from each other's hosts."""
        return self.endpoints[0].host if self.endpoints else ""


@dataclass(frozen=True, slots=True)
class VoterImage:
    id: int
    directory_id: UUID
    endpoints: tuple[EndpointImage, ...]
