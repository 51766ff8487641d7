"""The feature list: every API that this broker answers, one file each. What is not here is refused.

Client listeners speak CLIENT_APIS; internal ones the private APIs as well; the controller's listener what nodes of one
cluster say to each other, and nothing else.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from broker_engine.handlers import (
    add_offsets_to_txn,
    add_partitions_to_txn,
    add_raft_voter,
    allocate_producer_ids,
    alter_configs,
    alter_credentials,
    alter_partition,
    alter_partition_reassignments,
    alter_tenants,
    api_versions,
    begin_quorum_epoch,
    broker_heartbeat,
    broker_registration,
    consumer_group_describe,
    consumer_group_heartbeat,
    create_on_first_use,
    create_partitions,
    create_topics,
    delete_groups,
    delete_records,
    delete_topics,
    describe_cluster,
    describe_configs,
    describe_groups,
    describe_log_dirs,
    describe_producers,
    describe_quorum,
    describe_tenants,
    describe_topic_partitions,
    describe_transactions,
    elect_leaders,
    end_quorum_epoch,
    end_txn,
    envelope,
    fetch,
    fetch_snapshot,
    find_coordinator,
    heartbeat,
    identify,
    incremental_alter_configs,
    init_producer_id,
    join_group,
    leave_group,
    list_config_resources,
    list_groups,
    list_offsets,
    list_partition_reassignments,
    list_transactions,
    metadata,
    metadata_fetch,
    offset_commit,
    offset_delete,
    offset_fetch,
    offset_for_leader_epoch,
    produce,
    record_times,
    remove_raft_voter,
    replica_ends,
    replica_read,
    sasl_authenticate,
    sasl_handshake,
    sync_group,
    txn_offset_commit,
    unregister_broker,
    update_features,
    vote,
    write_txn_markers,
)
from broker_engine.handlers.api import AnyApi
from broker_engine.server.listeners import ListenerSpec

SIGN_IN_APIS: tuple[AnyApi, ...] = (api_versions.API, sasl_handshake.API, sasl_authenticate.API)

CLIENT_APIS: tuple[AnyApi, ...] = (
    *SIGN_IN_APIS,
    metadata.API,
    produce.API,
    fetch.API,
    list_offsets.API,
    offset_for_leader_epoch.API,
    init_producer_id.API,
    find_coordinator.API,
    join_group.API,
    sync_group.API,
    heartbeat.API,
    leave_group.API,
    consumer_group_heartbeat.API,
    offset_commit.API,
    offset_fetch.API,
    offset_delete.API,
    list_groups.API,
    describe_groups.API,
    consumer_group_describe.API,
    delete_groups.API,
    add_partitions_to_txn.API,
    add_offsets_to_txn.API,
    end_txn.API,
    txn_offset_commit.API,
    write_txn_markers.API,
    describe_producers.API,
    list_transactions.API,
    describe_transactions.API,
    create_topics.API,
    delete_topics.API,
    create_partitions.API,
    delete_records.API,
    describe_configs.API,
    list_config_resources.API,
    incremental_alter_configs.API,
    alter_configs.API,
    describe_cluster.API,
    describe_topic_partitions.API,
    describe_log_dirs.API,
    elect_leaders.API,
    alter_partition_reassignments.API,
    list_partition_reassignments.API,
    unregister_broker.API,
    update_features.API,
    describe_quorum.API,
    add_raft_voter.API,
    remove_raft_voter.API,
)

PRIVATE_APIS: tuple[AnyApi, ...] = (alter_tenants.API, alter_credentials.API, describe_tenants.API)

NODE_APIS: tuple[AnyApi, ...] = (
    identify.API,
    broker_registration.API,
    broker_heartbeat.API,
    alter_partition.API,
    allocate_producer_ids.API,
    replica_ends.API,
    replica_read.API,
    record_times.API,
    create_on_first_use.API,
    add_partitions_to_txn.NODE_API,
    write_txn_markers.API,
    envelope.API,
    vote.API,
    begin_quorum_epoch.API,
    end_quorum_epoch.API,
    metadata_fetch.API,
    fetch_snapshot.API,
    describe_quorum.API,
    add_raft_voter.API,
    remove_raft_voter.API,
)


def apis_of(listener: ListenerSpec) -> Mapping[int, AnyApi]:
    """By key: what a connection to this listener may ask for."""
    if listener.is_controller:
        return _by_key((*SIGN_IN_APIS, *NODE_APIS))
    return _by_key((*CLIENT_APIS, *PRIVATE_APIS) if listener.is_internal else CLIENT_APIS)


def _by_key(apis: Iterable[AnyApi]) -> Mapping[int, AnyApi]:
    return {api.key: api for api in apis}


FORWARDED_APIS = _by_key(api for api in (*CLIENT_APIS, *PRIVATE_APIS) if api.is_for_controller)
"""What an envelope may hold."""
