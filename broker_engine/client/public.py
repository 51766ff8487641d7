"""What users of the client take from the package by name: all of it in one place (__init__.py loads it on demand)."""

from __future__ import annotations

from broker_engine.client.admin import Admin, raise_errors
from broker_engine.client.admin_model import (
    ClusterDescription,
    ConfigChange,
    ConfigEntry,
    ConfigOperation,
    ConfigResource,
    ConfigSource,
    CreatedTopic,
    Credential,
    DescribedCredential,
    DescribedMechanism,
    DescribedTenant,
    DescribedTenants,
    NewTopic,
    QuorumDescription,
    QuorumReplica,
    Reassignment,
    ResourceType,
    Tenant,
)
from broker_engine.client.client import Client
from broker_engine.client.config import BrokerAddress, ClientConfig, PlainCredentials
from broker_engine.client.consumer import Consumer
from broker_engine.client.consumer_member import ConsumerMember
from broker_engine.client.errors import (
    AbortRequired,
    AuthenticationFailed,
    BufferExhausted,
    ClientClosed,
    ConnectionFailed,
    DeliveryTimedOut,
    KafkaError,
    OffsetOutOfRange,
    ProducerFenced,
    RequestTimedOut,
    UnknownTopic,
    UnsupportedVersion,
)
from broker_engine.client.group_member import GroupMember
from broker_engine.client.group_protocol import GroupIdentity
from broker_engine.client.membership import Membership
from broker_engine.client.metadata import ClusterView, PartitionView, TopicView
from broker_engine.client.model import (
    FetchedPartition,
    FoundOffset,
    Record,
    RecordMetadata,
    Start,
    Timestamp,
    TopicPartition,
)
from broker_engine.client.producer import Producer
from broker_engine.client.transactions import TransactionalProducer
from broker_engine.errors import ErrorCode

__all__ = [
    "AbortRequired",
    "Admin",
    "AuthenticationFailed",
    "BrokerAddress",
    "BufferExhausted",
    "Client",
    "ClientClosed",
    "ClientConfig",
    "ClusterDescription",
    "ClusterView",
    "ConfigChange",
    "ConfigEntry",
    "ConfigOperation",
    "ConfigResource",
    "ConfigSource",
    "ConnectionFailed",
    "Consumer",
    "ConsumerMember",
    "CreatedTopic",
    "Credential",
    "DeliveryTimedOut",
    "DescribedCredential",
    "DescribedMechanism",
    "DescribedTenant",
    "DescribedTenants",
    "ErrorCode",
    "FetchedPartition",
    "FoundOffset",
    "GroupIdentity",
    "GroupMember",
    "KafkaError",
    "Membership",
    "NewTopic",
    "OffsetOutOfRange",
    "PartitionView",
    "PlainCredentials",
    "Producer",
    "ProducerFenced",
    "QuorumDescription",
    "QuorumReplica",
    "Reassignment",
    "Record",
    "RecordMetadata",
    "RequestTimedOut",
    "ResourceType",
    "Start",
    "Tenant",
    "Timestamp",
    "TopicPartition",
    "TopicView",
    "TransactionalProducer",
    "UnknownTopic",
    "UnsupportedVersion",
    "raise_errors",
]
