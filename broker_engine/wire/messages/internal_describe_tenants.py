"""DescribeTenants (key 10003, private), version 0: what the engine holds, so that the control plane can find drift.

A null list of tenant ids asks for all. Server keys stay in the engine: with one, a reader could pose as the broker.
"""

from __future__ import annotations

from broker_engine.wire.api import declare
from broker_engine.wire.kinds import Array, Bytes, Int8, Int16, Int32, String
from broker_engine.wire.schema import Message, Struct


class DescribeTenantsRequest(Message, versions="0"):
    tenant_ids: Array[String] | None = None


class DescribeTenantsTenant(Struct):
    tenant_id: String = ""
    cluster_id: String = ""
    policy_json: String = "{}"
    topic_count: Int32 = 0
    partition_count: Int32 = 0


class DescribeTenantsMechanism(Struct):
    mechanism: Int8 = 1
    salt: Bytes = b""
    iterations: Int32 = 0
    stored_key: Bytes = b""


class DescribeTenantsCredential(Struct):
    username: String = ""
    tenant_id: String = ""
    principal: String = ""
    mechanisms: Array[DescribeTenantsMechanism] = ()


class DescribeTenantsResponse(Message, versions="0"):
    error_code: Int16 = 0
    tenants: Array[DescribeTenantsTenant] = ()
    credentials: Array[DescribeTenantsCredential] = ()


API = declare(10003, "DescribeTenants", DescribeTenantsRequest, DescribeTenantsResponse, is_internal=True)
