"""An image as records: replaying them, from nothing, gives an equal one. What a snapshot of the metadata log holds."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from uuid import UUID

from broker_engine.metadata import records as r
from broker_engine.metadata.image import MetadataImage
from broker_engine.metadata.parts import (
    BrokerImage,
    CredentialImage,
    EndpointImage,
    PartitionImage,
    TopicImage,
    VoterImage,
)


def records_of(image: MetadataImage) -> Iterator[r.Record]:
    """In a fixed order, so that equal images give equal bytes on every node. `next_offset` is the snapshot's name."""
    yield from (r.FeatureLevelRecord(name=name, level=image.features[name]) for name in sorted(image.features))
    if image.voters:
        yield r.VotersRecord(voters=[_voter(voter) for voter in image.voters])
    yield from (registration_record(image.brokers[broker_id]) for broker_id in sorted(image.brokers))
    yield from (r.RemoveTenantRecord(tenant=tenant) for tenant in sorted(image.removed_tenants))
    yield from _tenants(image)
    for topic in sorted(image.topics.values(), key=lambda topic: topic.name):
        yield from _topic(topic)
    for broker_name in sorted(image.broker_configs):
        yield from _configs(r.RESOURCE_BROKER, "", broker_name, image.broker_configs[broker_name].items())
    for group in sorted(image.group_configs):
        yield from _configs(r.RESOURCE_GROUP, group.tenant, group.name, image.group_configs[group].items())
    yield from (_credential(image.credentials[name]) for name in sorted(image.credentials))
    if image.next_producer_id:
        yield r.ProducerIdsRecord(next_producer_id=image.next_producer_id)


def partition_record(topic_id: UUID, index: int, partition: PartitionImage) -> r.PartitionRecord:
    return r.PartitionRecord(
        topic_id=topic_id,
        partition=index,
        replicas=partition.replicas,
        isr=partition.isr,
        elr=partition.elr,
        leader=partition.leader,
        leader_epoch=partition.leader_epoch,
        partition_epoch=partition.partition_epoch,
        adding=partition.adding,
        removing=partition.removing,
        last_known_elr=partition.last_known_elr,
        leader_recovery_state=partition.leader_recovery_state,
        unclean_elections=partition.unclean_elections,
    )


def registration_record(broker: BrokerImage) -> r.BrokerRegistrationRecord:
    """As it stands now: fenced or not, in its own epoch whatever the record's offset is."""
    return r.BrokerRegistrationRecord(
        broker_id=broker.id,
        incarnation_id=broker.incarnation_id,
        rack=broker.rack,
        endpoints=[endpoint_field(endpoint) for endpoint in broker.endpoints],
        fenced=broker.is_fenced,
        directory_id=broker.directory_id,
        controller_endpoint=endpoint_field(broker.controller_endpoint) if broker.controller_endpoint else None,
        is_shutting_down=broker.is_shutting_down,
        broker_epoch=broker.epoch,
    )


def endpoint_field(endpoint: EndpointImage) -> r.EndpointField:
    return r.EndpointField(
        name=endpoint.name, host=endpoint.host, port=endpoint.port, security_protocol=endpoint.security_protocol
    )


def _voter(voter: VoterImage) -> r.VoterField:
    endpoints = [endpoint_field(endpoint) for endpoint in voter.endpoints]
    return r.VoterField(voter_id=voter.id, directory_id=voter.directory_id, endpoints=endpoints)


def _tenants(image: MetadataImage) -> Iterator[r.Record]:
    for tenant_id in sorted(image.tenants):
        tenant = image.tenants[tenant_id]
        yield r.TenantRecord(tenant=tenant.id, cluster_id=tenant.cluster_id, policy_json=tenant.policy_json)


def _topic(topic: TopicImage) -> Iterator[r.Record]:
    tenant, name = topic.name.tenant, topic.name.name
    yield r.TopicRecord(tenant=tenant, name=name, topic_id=topic.id)
    for index in sorted(topic.partitions):
        yield partition_record(topic.id, index, topic.partitions[index])
    yield from _configs(r.RESOURCE_TOPIC, tenant, name, topic.configs.items())


def _configs(resource_type: int, tenant: str, name: str, items: Iterable[tuple[str, str]]) -> Iterator[r.Record]:
    for key, value in sorted(items):
        yield r.ConfigRecord(tenant=tenant, resource_type=resource_type, resource_name=name, name=key, value=value)


def _credential(credential: CredentialImage) -> r.CredentialRecord:
    mechanisms = [
        r.ScramMechanismField(
            mechanism=mechanism,
            salt=verifier.salt,
            iterations=verifier.iterations,
            stored_key=verifier.stored_key,
            server_key=verifier.server_key,
        )
        for mechanism, verifier in sorted(credential.verifiers.items())
    ]
    return r.CredentialRecord(
        tenant=credential.tenant, username=credential.username, principal=credential.principal, mechanisms=mechanisms
    )
