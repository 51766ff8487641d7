"""All APIs this code knows, by key. The server decides what a listener offers; this says what can be read."""

from __future__ import annotations

from broker_engine.wire.api import ApiSpec
from broker_engine.wire.messages import (
    alter_configs,
    api_versions,
    create_partitions,
    create_topics,
    delete_records,
    delete_topics,
    describe_cluster,
    describe_configs,
    describe_topic_partitions,
    fetch,
    find_coordinator,
    heartbeat,
    incremental_alter_configs,
    init_producer_id,
    internal_alter_credentials,
    internal_alter_tenants,
    internal_describe_tenants,
    join_group,
    leave_group,
    list_offsets,
    metadata,
    offset_commit,
    offset_fetch,
    offset_for_leader_epoch,
    produce,
    sasl_authenticate,
    sasl_handshake,
    sync_group,
)

_MODULES = (
    alter_configs,
    api_versions,
    create_partitions,
    create_topics,
    delete_records,
    delete_topics,
    describe_cluster,
    describe_configs,
    describe_topic_partitions,
    fetch,
    find_coordinator,
    heartbeat,
    incremental_alter_configs,
    init_producer_id,
    internal_alter_credentials,
    internal_alter_tenants,
    internal_describe_tenants,
    join_group,
    leave_group,
    list_offsets,
    metadata,
    offset_commit,
    offset_fetch,
    offset_for_leader_epoch,
    produce,
    sasl_authenticate,
    sasl_handshake,
    sync_group,
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
