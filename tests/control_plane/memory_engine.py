"""An engine in memory: a whole implementation of the seam, with brokers that lag and an engine that can be away.

Each broker has its own view of the topics; `lagging` brokers see changes only after `catch_up`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from uuid import UUID, uuid4

from control_plane.engine.interface import (
    Credential,
    CredentialView,
    EngineRefused,
    EngineUnavailable,
    Inventory,
    PartitionView,
    TenantView,
    TopicName,
    TopicSpec,
    TopicView,
)
from tests.control_plane.memory_cluster import MemoryCluster
from tests.control_plane.memory_groups import MemoryGroups

KNOWN_CONFIGS = {"retention.ms", "cleanup.policy", "segment.bytes", "max.message.bytes", "min.insync.replicas"}


@dataclass
class MemoryEngine:
    kind: str = "memory"
    is_away: bool = False
    calls: int = 0
    topics: dict[TopicName, TopicView] = field(default_factory=dict)
    tenants: dict[str, TenantView] = field(default_factory=dict)
    credentials: dict[str, Credential] = field(default_factory=dict)
    shown: dict[int, dict[TopicName, int]] = field(default_factory=lambda: {1: {}, 2: {}})
    lagging: set[int] = field(default_factory=set)
    cluster: MemoryCluster = field(default_factory=MemoryCluster)
    groups: MemoryGroups = field(default_factory=MemoryGroups)

    def create_topic(self, name: TopicName, spec: TopicSpec, *, timeout_s: float) -> bool:
        self._answer(timeout_s)
        if name in self.topics:
            return False
        self._check_configs(spec.configs)
        self._put(TopicView(name, uuid4(), spec.partitions, spec.replication_factor or 1, dict(spec.configs)))
        return True

    def delete_topic(self, name: TopicName, *, timeout_s: float) -> None:
        self._answer(timeout_s)
        self.topics.pop(name, None)
        self._publish(name)

    def add_partitions(self, name: TopicName, total: int, *, timeout_s: float) -> None:
        self._answer(timeout_s)
        self._put(replace(self.topics[name], partitions=total))

    def alter_configs(
        self, name: TopicName, *, put: Mapping[str, str], remove: Iterable[str], timeout_s: float
    ) -> None:
        self._answer(timeout_s)
        self._check_configs(put)
        gone = set(remove)
        kept = {key: value for key, value in self.topics[name].configs.items() if key not in gone}
        self._put(replace(self.topics[name], configs={**kept, **put}))

    def describe_topic(self, name: TopicName, *, timeout_s: float) -> TopicView | None:
        self._answer(timeout_s)
        return self.topics.get(name)

    def describe_topics(self, *, timeout_s: float) -> list[TopicView]:
        self._answer(timeout_s)
        return list(self.topics.values())

    def describe_partitions(self, name: TopicName, *, timeout_s: float) -> list[PartitionView] | None:
        self._answer(timeout_s)
        view = self.topics.get(name)
        if view is None:
            return None
        return [PartitionView(index, 1, 0, (1,), (1,), 0, 0) for index in range(view.partitions)]

    def wait_until_shown(self, name: TopicName, partitions: int, *, timeout_s: float) -> bool:
        self._answer(timeout_s)
        return all(view.get(name, 0) == partitions for view in self.shown.values())

    def inventory(self, *, timeout_s: float) -> Inventory:
        self._answer(timeout_s)
        views = {
            name: CredentialView(name, it.tenant, frozenset((v.mechanism, v.stored_key) for v in it.verifiers))
            for name, it in self.credentials.items()
        }
        return Inventory(dict(self.tenants), views)

    def push_tenants(self, tenants: Iterable[TenantView], *, timeout_s: float) -> None:
        self._answer(timeout_s)
        self.tenants.update({view.tenant: view for view in tenants})

    def push_credentials(self, credentials: Iterable[Credential], *, timeout_s: float) -> None:
        self._answer(timeout_s)
        self.credentials.update({credential.username: credential for credential in credentials})

    def remove_credentials(self, usernames: Iterable[str], *, timeout_s: float) -> None:
        self._answer(timeout_s)
        for username in usernames:
            self.credentials.pop(username, None)

    def born(self, tenant: str, name: str, partitions: int = 1, **configs: str) -> UUID:
        """A topic made by a Kafka client, past the control plane."""
        view = TopicView(TopicName(tenant, name), uuid4(), partitions, 1, configs)
        self._put(view)
        return view.topic_id

    def catch_up(self) -> None:
        self.lagging.clear()
        for view in self.shown.values():
            view.clear()
            view.update({name: topic.partitions for name, topic in self.topics.items()})

    def _put(self, view: TopicView) -> None:
        self.topics[view.name] = view
        self._publish(view.name)

    def _publish(self, name: TopicName) -> None:
        partitions = self.topics[name].partitions if name in self.topics else 0
        for broker, view in self.shown.items():
            if broker not in self.lagging:
                view[name] = partitions

    def _answer(self, timeout_s: float) -> None:
        assert timeout_s > 0
        self.calls += 1
        if self.is_away:
            raise EngineUnavailable("no broker answers at 127.0.0.1:9094")

    def _check_configs(self, configs: Mapping[str, str]) -> None:
        for key, value in configs.items():
            if key not in KNOWN_CONFIGS:
                raise EngineRefused("INVALID_CONFIG", f"unknown topic config {key}")
            if key.endswith((".ms", ".bytes")) and not value.lstrip("-").isdigit():
                raise EngineRefused("INVALID_CONFIG", f"{key} must be a number, not {value!r}")
