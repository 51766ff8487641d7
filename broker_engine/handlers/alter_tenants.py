"""AlterTenants (key 10001, private), version 0: the control plane says which tenants there are, and their policies."""

from __future__ import annotations

from broker_engine.errors import BrokerError
from broker_engine.handlers.api import Api, Call, Scope
from broker_engine.metadata.controller import TenantChange, alter_tenants
from broker_engine.wire.messages.internal_alter_tenants import (
    AlterTenantsRequest,
    AlterTenantsResponse,
    AlterTenantsResult,
)


async def handle(request: AlterTenantsRequest, call: Call) -> AlterTenantsResponse:
    changes = [
        TenantChange(tenant.tenant_id, tenant.cluster_id, tenant.policy_json, tenant.deleted)
        for tenant in request.tenants
    ]
    results = await call.broker.metadata.commit(lambda image: alter_tenants(image, changes))
    return AlterTenantsResponse(
        results=[
            AlterTenantsResult(
                tenant_id=result.tenant_id, error_code=result.error_code, error_message=result.error_message
            )
            for result in results
        ]
    )


def refuse(request: AlterTenantsRequest, error: BrokerError) -> AlterTenantsResponse:
    return AlterTenantsResponse(
        results=[
            AlterTenantsResult(tenant_id=tenant.tenant_id, error_code=error.code, error_message=error.message)
            for tenant in request.tenants
        ]
    )


API = Api(request=AlterTenantsRequest, scope=Scope.PRIVATE, handle=handle, refuse=refuse, is_for_controller=True)
