"""All APIs this code knows, by key. The server decides what a listener offers; this says what can be read."""

from __future__ import annotations

from broker_engine.wire.api import ApiSpec
from broker_engine.wire.messages import (
    add_raft_voter,
    allocate_producer_ids,
    alter_configs,
    alter_partition,
    alter_partition_reassignments,
    api_versions,
    begin_quorum_epoch,
    broker_heartbeat,
    broker_registration,
    create_partitions,
    create_topics,
    delete_groups,
    delete_records,
    delete_topics,
    describe_cluster,
    describe_configs,
    describe_groups,
    describe_log_dirs,
    describe_quorum,
    describe_topic_partitions,
    elect_leaders,
    end_quorum_epoch,
    envelope,
    fetch,
    fetch_snapshot,
    find_coordinator,
    heartbeat,
    incremental_alter_configs,
    init_producer_id,
    internal_alter_credentials,
    internal_alter_tenants,
    internal_create_on_first_use,
    internal_describe_tenants,
    internal_identify,
    internal_replica_ends,
    join_group,
    leave_group,
    list_groups,
    list_offsets,
    list_partition_reassignments,
    metadata,
    offset_commit,
    offset_delete,
    offset_fetch,
    offset_for_leader_epoch,
    produce,
    remove_raft_voter,
    sasl_authenticate,
    sasl_handshake,
    sync_group,
    unregister_broker,
    vote,
)

_MODULES = (
    add_raft_voter,
    allocate_producer_ids,
    alter_configs,
    alter_partition,
    alter_partition_reassignments,
    api_versions,
    begin_quorum_epoch,
    broker_heartbeat,
    broker_registration,
    create_partitions,
    create_topics,
    delete_groups,
    delete_records,
    delete_topics,
    describe_cluster,
    describe_configs,
    describe_groups,
    describe_log_dirs,
    describe_quorum,
    describe_topic_partitions,
    elect_leaders,
    end_quorum_epoch,
    envelope,
    fetch,
    fetch_snapshot,
    find_coordinator,
    heartbeat,
    incremental_alter_configs,
    init_producer_id,
    internal_alter_credentials,
    internal_alter_tenants,
    internal_create_on_first_use,
    internal_describe_tenants,
    internal_identify,
    internal_replica_ends,
    join_group,
    leave_group,
    list_groups,
    list_offsets,
    list_partition_reassignments,
    metadata,
    offset_commit,
    offset_delete,
    offset_fetch,
    offset_for_leader_epoch,
    produce,
    remove_raft_voter,
    sasl_authenticate,
    sasl_handshake,
    sync_group,
    unregister_broker,
    vote,
)

_BY_KEY: dict[int, ApiSpec] = {module.API.key: module.API for module in _MODULES}
assert len(_BY_KEY) == len(_MODULES), "two APIs share a key"


def find(key: int) -> ApiSpec | None:
    return _BY_KEY.get(key)


def api(key: int) -> ApiSpec:
    """The API with this key; a key that is not declared is a bug of the caller."""
    return _BY_KEY[key]


def all_apis() -> tuple[ApiSpec, ...]:
    """Every declared API, private ones included, in the order of their keys."""
    return tuple(_BY_KEY[key] for key in sorted(_BY_KEY))
