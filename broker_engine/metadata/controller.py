"""All commands of the controller under one import: image in, Decision out. Start at README.md."""

from broker_engine.metadata.cluster import ProducerIdBlock, allocate_producer_ids, bootstrap, register_broker
from broker_engine.metadata.configs import (
    ConfigChange,
    ConfigOperation,
    ConfigResult,
    Resource,
    alter_configs,
    incremental_alter_configs,
)
from broker_engine.metadata.credentials import (
    CredentialChange,
    CredentialResult,
    account_of,
    alter_credentials,
    scram_verifier,
)
from broker_engine.metadata.decision import Decision
from broker_engine.metadata.tenants import TenantChange, TenantResult, alter_tenants
from broker_engine.metadata.topics import (
    NewPartitions,
    NewTopic,
    TopicResult,
    create_on_first_use,
    create_partitions,
    create_topics,
    delete_topics,
)

__all__ = [
    "ConfigChange",
    "ConfigOperation",
    "ConfigResult",
    "CredentialChange",
    "CredentialResult",
    "Decision",
    "NewPartitions",
    "NewTopic",
    "ProducerIdBlock",
    "Resource",
    "TenantChange",
    "TenantResult",
    "TopicResult",
    "account_of",
    "allocate_producer_ids",
    "alter_configs",
    "alter_credentials",
    "alter_tenants",
    "bootstrap",
    "create_on_first_use",
    "create_partitions",
    "create_topics",
    "delete_topics",
    "incremental_alter_configs",
    "register_broker",
    "scram_verifier",
]
