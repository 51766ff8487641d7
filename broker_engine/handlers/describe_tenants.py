"""DescribeTenants (key 10003, private), version 0: what the engine holds, so that the control plane can find drift."""

from __future__ import annotations

from broker_engine.errors import BrokerError
from broker_engine.handlers.api import Api, Call, Scope
from broker_engine.metadata.image import CredentialImage
from broker_engine.metadata.parts import TenantImage
from broker_engine.wire.messages.internal_describe_tenants import (
    DescribeTenantsCredential,
    DescribeTenantsMechanism,
    DescribeTenantsRequest,
    DescribeTenantsResponse,
    DescribeTenantsTenant,
)


def handle(request: DescribeTenantsRequest, call: Call) -> DescribeTenantsResponse:
    image = call.broker.image
    ids = sorted(image.tenants) if request.tenant_ids is None else request.tenant_ids
    tenants = [image.tenants[tenant_id] for tenant_id in ids if tenant_id in image.tenants]
    return DescribeTenantsResponse(
        tenants=[_tenant(tenant, call) for tenant in tenants],
        credentials=[_credential(each) for tenant in tenants for each in image.credentials_of(tenant.id)],
    )


def refuse(request: DescribeTenantsRequest, error: BrokerError) -> DescribeTenantsResponse:
    return DescribeTenantsResponse(error_code=error.code)


def _tenant(tenant: TenantImage, call: Call) -> DescribeTenantsTenant:
    namespace = call.broker.image.namespace(tenant.id)
    return DescribeTenantsTenant(
        tenant_id=tenant.id,
        cluster_id=tenant.cluster_id,
        policy_json=tenant.policy_json,
        topic_count=len(namespace.topics),
        partition_count=namespace.partition_count,
    )


def _credential(credential: CredentialImage) -> DescribeTenantsCredential:
    return DescribeTenantsCredential(
        username=credential.username,
        tenant_id=credential.tenant,
        principal=credential.principal,
        mechanisms=[
            DescribeTenantsMechanism(
                mechanism=kind, salt=verifier.salt, iterations=verifier.iterations, stored_key=verifier.stored_key
            )
            for kind, verifier in sorted(credential.verifiers.items())
        ],
    )


API = Api(request=DescribeTenantsRequest, scope=Scope.PRIVATE, handle=handle, refuse=refuse)
