"""AlterTenants: the control plane tells the engine which tenants there are. May be sent twice without harm."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from broker_engine.errors import BrokerError, ErrorCode
from broker_engine.metadata.decision import Decision, invalid_request, repeated
from broker_engine.metadata.image import MetadataImage
from broker_engine.metadata.policy import parse_policy
from broker_engine.metadata.records import Record, RemoveCredentialRecord, RemoveTenantRecord, TenantRecord
from broker_engine.metadata.topics import remove_topic_record
from broker_engine.names import is_valid_tenant_id

_CLUSTER_ID_LENGTH_MAX = 64


@dataclass(frozen=True, slots=True)
class TenantChange:
    tenant_id: str
    cluster_id: str = ""
    policy_json: str = "{}"
    deleted: bool = False


@dataclass(frozen=True, slots=True)
class TenantResult:
    tenant_id: str
    error_code: ErrorCode = ErrorCode.NONE
    error_message: str | None = None


def alter_tenants(image: MetadataImage, changes: Sequence[TenantChange]) -> Decision[TenantResult]:
    twice = repeated(change.tenant_id for change in changes)
    working, records, results = image, list[Record](), list[TenantResult]()
    for change in {change.tenant_id: change for change in changes}.values():
        try:
            if change.tenant_id in twice:
                raise invalid_request("Duplicate tenant id.")
            made = _remove(working, change.tenant_id) if change.deleted else _put(working, change)
        except BrokerError as error:
            results.append(TenantResult(change.tenant_id, error.code, error.message))
            continue
        working = working.replay(made, working.next_offset)
        records += made
        results.append(TenantResult(change.tenant_id))
    return Decision(tuple(records), tuple(results))


def _put(image: MetadataImage, change: TenantChange) -> list[Record]:
    if not is_valid_tenant_id(change.tenant_id):
        raise invalid_request("A tenant id has a-z, 0-9 and '-', at most 63 of them, and does not begin with '-'.")
    if change.tenant_id in image.removed_tenants:
        raise invalid_request("A removed tenant's id is never used again.")
    if not change.cluster_id or len(change.cluster_id) > _CLUSTER_ID_LENGTH_MAX:
        raise invalid_request(f"A cluster id has 1 to {_CLUSTER_ID_LENGTH_MAX} characters.")
    parse_policy(change.policy_json)
    current = image.tenant(change.tenant_id)
    if current is None:
        _check_cluster_id_is_free(image, change.cluster_id)
    elif current.cluster_id != change.cluster_id:
        # Clients keep the cluster id: a new one would make them think that they reached somebody else's cluster.
        raise invalid_request("A tenant's cluster id never changes.")
    if current is not None and current.policy_json == change.policy_json:
        return []
    return [TenantRecord(tenant=change.tenant_id, cluster_id=change.cluster_id, policy_json=change.policy_json)]


def _check_cluster_id_is_free(image: MetadataImage, cluster_id: str) -> None:
    if any(tenant.cluster_id == cluster_id for tenant in image.tenants.values()):
        raise invalid_request("Another tenant has this cluster id.")


def _remove(image: MetadataImage, tenant_id: str) -> list[Record]:
    """With all that it owns. A tenant that is not there is already gone."""
    if not is_valid_tenant_id(tenant_id):
        raise invalid_request("This is not a tenant's id.")
    if image.tenant(tenant_id) is None and not image.topics_of(tenant_id):
        return []
    records: list[Record] = [remove_topic_record(topic) for topic in image.topics_of(tenant_id)]
    records += [
        RemoveCredentialRecord(tenant=tenant_id, username=credential.username)
        for credential in image.credentials_of(tenant_id)
    ]
    return [*records, RemoveTenantRecord(tenant=tenant_id)]
