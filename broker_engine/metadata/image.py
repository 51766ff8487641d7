"""MetadataImage: everything that the metadata log says, as of one offset. Frozen; `replay` gives the next one.

Every broker replays the same records into an equal image, in whatever pieces they arrive. An image shares all that did
not change with the one before it, so that a change costs what it touches: a tenant's names, not all tenants'.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar
from uuid import UUID

from broker_engine.errors import BrokerError
from broker_engine.metadata import records as r
from broker_engine.metadata.parts import (
    BrokerImage,
    CredentialImage,
    EndpointImage,
    Namespace,
    PartitionImage,
    TenantImage,
    TopicImage,
    VoterImage,
)
from broker_engine.metadata.policy import NO_RULES, TenantPolicy, parse_policy
from broker_engine.names import Name, collision_key
from broker_engine.security.scram import ScramMechanism, ScramVerifier

__all__ = [
    "EMPTY_IMAGE",
    "BrokerImage",
    "CredentialImage",
    "MetadataImage",
    "PartitionImage",
    "ReplayError",
    "TopicImage",
]

_NO_TOPICS = Namespace()
K = TypeVar("K")
V = TypeVar("V")


class ReplayError(Exception):
    """A record that cannot follow the ones before it: the log is damaged or a bug wrote it, and the node must stop."""


@dataclass(frozen=True, slots=True)
class MetadataImage:
    next_offset: int = 0
    """The first offset that this image does not hold."""
    topics: Mapping[UUID, TopicImage] = field(default_factory=dict)
    namespaces: Mapping[str, Namespace] = field(default_factory=dict)
    """By tenant, root among them; tenants without topics are absent."""
    tenants: Mapping[str, TenantImage] = field(default_factory=dict)
    removed_tenants: frozenset[str] = frozenset()
    credentials: Mapping[str, CredentialImage] = field(default_factory=dict)
    credentials_by_tenant: Mapping[str, frozenset[str]] = field(default_factory=dict)
    brokers: Mapping[int, BrokerImage] = field(default_factory=dict)
    broker_configs: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """By node id as text, "" = all brokers."""
    group_configs: Mapping[Name, Mapping[str, str]] = field(default_factory=dict)
    next_producer_id: int = 0
    features: Mapping[str, int] = field(default_factory=dict)
    voters: tuple[VoterImage, ...] = ()

    def topic(self, name: Name) -> TopicImage | None:
        return self.namespaces.get(name.tenant, _NO_TOPICS).topics.get(name.name)

    def topic_by_id(self, topic_id: UUID) -> TopicImage | None:
        return self.topics.get(topic_id)

    def topics_of(self, tenant: str) -> Collection[TopicImage]:
        return self.namespaces.get(tenant, _NO_TOPICS).topics.values()

    def namespace(self, tenant: str) -> Namespace:
        return self.namespaces.get(tenant, _NO_TOPICS)

    def tenant(self, tenant_id: str) -> TenantImage | None:
        return self.tenants.get(tenant_id)

    def policy(self, tenant_id: str) -> TenantPolicy:
        """No rules for root, and for a tenant that the control plane has not named yet."""
        tenant = self.tenants.get(tenant_id)
        return NO_RULES if tenant is None else tenant.policy

    def credential(self, username: str) -> CredentialImage | None:
        return self.credentials.get(username)

    def credentials_of(self, tenant: str) -> list[CredentialImage]:
        return [self.credentials[username] for username in sorted(self.credentials_by_tenant.get(tenant, ()))]

    def replay(self, records: Iterable[r.Record], base_offset: int) -> MetadataImage:
        """The image after `records`, of which the first has `base_offset`. This one stays as it is.

        Offsets may jump (control records are not replayed), but never go back.
        """
        assert base_offset >= self.next_offset, "a record is replayed once"
        draft = _Draft(self)
        offset = base_offset
        for record in records:
            draft.apply(record, offset)
            offset += 1
        return draft.finish(offset)


class _Draft:
    """An image being made: copies a mapping the first time that it changes, so that the old image never does."""

    def __init__(self, image: MetadataImage) -> None:
        self._image = image
        self._changes: dict[str, Any] = {}
        self._namespaces: dict[str, _NamespaceDraft] = {}
        self._partitions: dict[UUID, dict[int, PartitionImage]] = {}

    def finish(self, next_offset: int) -> MetadataImage:
        if self._namespaces:
            merged = dict(self._image.namespaces)
            for tenant, draft in self._namespaces.items():
                merged[tenant] = draft.finish()
                if not merged[tenant].topics:
                    del merged[tenant]
            self._changes["namespaces"] = merged
        return dataclasses.replace(self._image, next_offset=next_offset, **self._changes)

    def apply(self, record: r.Record, offset: int) -> None:
        _APPLY[type(record)](self, record, offset)

    def tenant(self, record: r.TenantRecord, _offset: int) -> None:
        try:
            policy = parse_policy(record.policy_json)
        except BrokerError as error:
            raise ReplayError(f"tenant {record.tenant}: {error.message}") from error
        image = TenantImage(record.tenant, record.cluster_id, record.policy_json, policy)
        self._changed("tenants", self._image.tenants)[record.tenant] = image

    def remove_tenant(self, record: r.RemoveTenantRecord, _offset: int) -> None:
        self._changed("tenants", self._image.tenants).pop(record.tenant, None)
        removed = self._changes.get("removed_tenants", self._image.removed_tenants)
        self._changes["removed_tenants"] = removed | {record.tenant}

    def topic(self, record: r.TopicRecord, _offset: int) -> None:
        name = Name(record.tenant, record.name)
        self._put_topic(TopicImage(record.topic_id, name, {}, {}))

    def partition(self, record: r.PartitionRecord, _offset: int) -> None:
        partitions = self._own_partitions(record.topic_id)
        state = PartitionImage(
            replicas=tuple(record.replicas),
            isr=tuple(record.isr),
            elr=tuple(record.elr),
            leader=record.leader,
            leader_epoch=record.leader_epoch,
            partition_epoch=record.partition_epoch,
            adding=tuple(record.adding),
            removing=tuple(record.removing),
            last_known_elr=tuple(record.last_known_elr),
            leader_recovery_state=record.leader_recovery_state,
            unclean_elections=record.unclean_elections,
        )
        if record.partition not in partitions:
            self._namespace(self._topic(record.topic_id).name.tenant).partition_count += 1
        partitions[record.partition] = state

    def remove_topic(self, record: r.RemoveTopicRecord, _offset: int) -> None:
        topic = self._pop("topics", self._image.topics, record.topic_id)
        self._namespace(topic.name.tenant).remove(topic)

    def config(self, record: r.ConfigRecord, _offset: int) -> None:
        if record.resource_type == r.RESOURCE_TOPIC:
            topic = self._namespace(record.tenant).topics.get(record.resource_name)
            if topic is None:
                raise ReplayError(f"config {record.name} belongs to a topic that is not there")
            self._put_topic(dataclasses.replace(topic, configs=_changed_config(topic.configs, record)))
            return
        if record.resource_type == r.RESOURCE_GROUP:
            groups = self._changed("group_configs", self._image.group_configs)
            _change_configs(groups, Name(record.tenant, record.resource_name), record)
            return
        brokers = self._changed("broker_configs", self._image.broker_configs)
        _change_configs(brokers, record.resource_name, record)

    def credential(self, record: r.CredentialRecord, _offset: int) -> None:
        verifiers = {ScramMechanism(m.mechanism): _verifier(m) for m in record.mechanisms}
        image = CredentialImage(record.username, record.tenant, record.principal, verifiers)
        self._changed("credentials", self._image.credentials)[record.username] = image
        by_tenant = self._changed("credentials_by_tenant", self._image.credentials_by_tenant)
        by_tenant[record.tenant] = by_tenant.get(record.tenant, frozenset()) | {record.username}

    def remove_credential(self, record: r.RemoveCredentialRecord, _offset: int) -> None:
        self._pop("credentials", self._image.credentials, record.username)
        by_tenant = self._changed("credentials_by_tenant", self._image.credentials_by_tenant)
        by_tenant[record.tenant] = by_tenant[record.tenant] - {record.username}
        if not by_tenant[record.tenant]:
            del by_tenant[record.tenant]

    def producer_ids(self, record: r.ProducerIdsRecord, _offset: int) -> None:
        self._changes["next_producer_id"] = record.next_producer_id

    def broker_registration(self, record: r.BrokerRegistrationRecord, offset: int) -> None:
        self._changed("brokers", self._image.brokers)[record.broker_id] = BrokerImage(
            id=record.broker_id,
            epoch=offset if record.broker_epoch == r.OWN_OFFSET else record.broker_epoch,
            incarnation_id=record.incarnation_id,
            rack=record.rack,
            endpoints=_endpoints(record.endpoints),
            is_fenced=record.fenced,
            directory_id=record.directory_id,
            controller_endpoint=_endpoint(record.controller_endpoint) if record.controller_endpoint else None,
            is_shutting_down=record.is_shutting_down,
        )

    def broker_change(self, record: r.BrokerChangeRecord, _offset: int) -> None:
        brokers = self._changed("brokers", self._image.brokers)
        broker = self._broker(brokers, record.broker_id, record.broker_epoch)
        brokers[record.broker_id] = dataclasses.replace(
            broker, is_fenced=record.fenced, is_shutting_down=record.is_shutting_down
        )

    def remove_broker(self, record: r.RemoveBrokerRecord, _offset: int) -> None:
        brokers = self._changed("brokers", self._image.brokers)
        self._broker(brokers, record.broker_id, record.broker_epoch)
        del brokers[record.broker_id]

    def _broker(self, brokers: Mapping[int, BrokerImage], broker_id: int, broker_epoch: int) -> BrokerImage:
        broker = brokers.get(broker_id)
        if broker is None or broker.epoch != broker_epoch:
            raise ReplayError(f"broker {broker_id} changes in epoch {broker_epoch}, which is not its own")
        return broker

    def feature_level(self, record: r.FeatureLevelRecord, _offset: int) -> None:
        self._changed("features", self._image.features)[record.name] = record.level

    def voters(self, record: r.VotersRecord, _offset: int) -> None:
        voters = (VoterImage(v.voter_id, v.directory_id, _endpoints(v.endpoints)) for v in record.voters)
        self._changes["voters"] = tuple(voters)

    # --- copy on first change

    def _changed(self, name: str, current: Mapping[K, V]) -> dict[K, V]:
        """The draft's own copy of one mapping of the image."""
        if name not in self._changes:
            self._changes[name] = dict(current)
        copy: dict[K, V] = self._changes[name]
        return copy

    def _pop(self, name: str, current: Mapping[K, V], key: K) -> V:
        mapping = self._changed(name, current)
        if key not in mapping:
            raise ReplayError(f"{key} is removed from {name}, but is not there")
        return mapping.pop(key)

    def _topic(self, topic_id: UUID) -> TopicImage:
        topic = self._changed("topics", self._image.topics).get(topic_id)
        if topic is None:
            raise ReplayError(f"topic {topic_id} is not there")
        return topic

    def _own_partitions(self, topic_id: UUID) -> dict[int, PartitionImage]:
        """The draft's own copy of a topic's partitions: one copy per topic, however many records follow."""
        if topic_id not in self._partitions:
            topic = self._topic(topic_id)
            self._partitions[topic_id] = dict(topic.partitions)
            self._put_topic(dataclasses.replace(topic, partitions=self._partitions[topic_id]))
        return self._partitions[topic_id]

    def _put_topic(self, topic: TopicImage) -> None:
        self._changed("topics", self._image.topics)[topic.id] = topic
        self._namespace(topic.name.tenant).put(topic)

    def _namespace(self, tenant: str) -> _NamespaceDraft:
        if tenant not in self._namespaces:
            self._namespaces[tenant] = _NamespaceDraft(self._image.namespace(tenant))
        return self._namespaces[tenant]


class _NamespaceDraft:
    def __init__(self, namespace: Namespace) -> None:
        self.topics = dict(namespace.topics)
        self._by_collision_key = dict(namespace.by_collision_key)
        self.partition_count = namespace.partition_count

    def put(self, topic: TopicImage) -> None:
        before = self.topics.get(topic.name.name)
        if before is not None and before.id != topic.id:
            raise ReplayError(f"topic {topic.id} takes the name of {before.id}")
        self.topics[topic.name.name] = topic
        self._by_collision_key[collision_key(topic.name.name)] = topic.name.name

    def remove(self, topic: TopicImage) -> None:
        del self.topics[topic.name.name]
        del self._by_collision_key[collision_key(topic.name.name)]
        self.partition_count -= topic.partition_count

    def finish(self) -> Namespace:
        return Namespace(self.topics, self._by_collision_key, self.partition_count)


_APPLY: dict[type[r.Record], Callable[[_Draft, Any, int], None]] = {
    r.TenantRecord: _Draft.tenant,
    r.RemoveTenantRecord: _Draft.remove_tenant,
    r.TopicRecord: _Draft.topic,
    r.PartitionRecord: _Draft.partition,
    r.RemoveTopicRecord: _Draft.remove_topic,
    r.ConfigRecord: _Draft.config,
    r.CredentialRecord: _Draft.credential,
    r.RemoveCredentialRecord: _Draft.remove_credential,
    r.ProducerIdsRecord: _Draft.producer_ids,
    r.BrokerRegistrationRecord: _Draft.broker_registration,
    r.FeatureLevelRecord: _Draft.feature_level,
    r.VotersRecord: _Draft.voters,
    r.BrokerChangeRecord: _Draft.broker_change,
    r.RemoveBrokerRecord: _Draft.remove_broker,
}
assert set(_APPLY) == set(r.RECORD_TYPES.values()), "every type of record changes the image"


def _change_configs(all_configs: dict[K, Mapping[str, str]], key: K, record: r.ConfigRecord) -> None:
    all_configs[key] = _changed_config(all_configs.get(key, {}), record)
    if not all_configs[key]:
        del all_configs[key]


def _changed_config(configs: Mapping[str, str], record: r.ConfigRecord) -> dict[str, str]:
    changed = {name: value for name, value in configs.items() if name != record.name}
    if record.value is not None:
        changed[record.name] = record.value
    return changed


def _verifier(mechanism: r.ScramMechanismField) -> ScramVerifier:
    kind = ScramMechanism(mechanism.mechanism)
    return ScramVerifier(kind, mechanism.salt, mechanism.iterations, mechanism.stored_key, mechanism.server_key)


def _endpoints(fields: Iterable[r.EndpointField]) -> tuple[EndpointImage, ...]:
    return tuple(map(_endpoint, fields))


def _endpoint(fields: r.EndpointField) -> EndpointImage:
    return EndpointImage(fields.name, fields.host, fields.port, fields.security_protocol)


EMPTY_IMAGE = MetadataImage()
