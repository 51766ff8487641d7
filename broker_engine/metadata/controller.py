"""All commands of the controller under one import: image in, Decision out. Start at README.md."""

from broker_engine.metadata.balance import Move, propose_balance
from broker_engine.metadata.brokers import (
    UNCLEAN_STOP,
    controlled_shutdown,
    fence_broker,
    is_cluster_of_one,
    register_broker,
    registered,
    unfence_broker,
    unregister_broker,
)
from broker_engine.metadata.cluster import ProducerIdBlock, allocate_producer_ids, bootstrap
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
from broker_engine.metadata.elections import ElectionResult, balance_leaders, elect_leaders, every_partition
from broker_engine.metadata.isr import IsrProposal, IsrResult, alter_partition
from broker_engine.metadata.log_ends import LogEnd, LogEnds
from broker_engine.metadata.partition_change import Election
from broker_engine.metadata.reassignment import (
    Reassignment,
    ReassignmentResult,
    alter_reassignments,
    list_reassignments,
)
from broker_engine.metadata.recovery import Recovered, recover_leaders
from broker_engine.metadata.sweep import led_count, replica_count, with_consequences
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
from broker_engine.metadata.unclean import find_leaders, waiting_for_leader

__all__ = [
    "UNCLEAN_STOP",
    "ConfigChange",
    "ConfigOperation",
    "ConfigResult",
    "CredentialChange",
    "CredentialResult",
    "Decision",
    "Election",
    "ElectionResult",
    "IsrProposal",
    "IsrResult",
    "LogEnd",
    "LogEnds",
    "Move",
    "NewPartitions",
    "NewTopic",
    "ProducerIdBlock",
    "Reassignment",
    "ReassignmentResult",
    "Recovered",
    "Resource",
    "TenantChange",
    "TenantResult",
    "TopicResult",
    "account_of",
    "allocate_producer_ids",
    "alter_configs",
    "alter_credentials",
    "alter_partition",
    "alter_reassignments",
    "alter_tenants",
    "balance_leaders",
    "bootstrap",
    "controlled_shutdown",
    "create_on_first_use",
    "create_partitions",
    "create_topics",
    "delete_topics",
    "elect_leaders",
    "every_partition",
    "fence_broker",
    "find_leaders",
    "incremental_alter_configs",
    "is_cluster_of_one",
    "led_count",
    "list_reassignments",
    "propose_balance",
    "recover_leaders",
    "register_broker",
    "registered",
    "replica_count",
    "scram_verifier",
    "unfence_broker",
    "unregister_broker",
    "waiting_for_leader",
    "with_consequences",
]
