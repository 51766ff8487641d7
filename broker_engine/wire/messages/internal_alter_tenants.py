"""AlterTenants (key 10001, private), version 0: the control plane tells the engine which tenants there are.

`policy_json` is an object: name_pattern, max_partitions_per_topic, max_partitions (each may be null), auto_create,
default_partitions. A tenant with `deleted` set is removed with all it owns, and its id is never used again.
"""

from __future__ import annotations

from broker_engine.wire.api import declare
from broker_engine.wire.kinds import Array, Bool, Int16, String
from broker_engine.wire.schema import Message, Struct


class AlterTenantsTenant(Struct):
    tenant_id: String = ""
    cluster_id: String = ""
    policy_json: String = "{}"
    deleted: Bool = False


class AlterTenantsRequest(Message, versions="0"):
    tenants: Array[AlterTenantsTenant] = ()


class AlterTenantsResult(Struct):
    tenant_id: String = ""
    error_code: Int16 = 0
    error_message: String | None = None


class AlterTenantsResponse(Message, versions="0"):
    results: Array[AlterTenantsResult] = ()


API = declare(10001, "AlterTenants", AlterTenantsRequest, AlterTenantsResponse, is_internal=True)
