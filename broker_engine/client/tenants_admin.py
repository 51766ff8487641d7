"""The private admin calls (10001-10003): tenants and API keys. Only an internal listener answers them."""

from __future__ import annotations

from collections.abc import Iterable

from broker_engine.client.admin_model import (
    Credential,
    DescribedCredential,
    DescribedMechanism,
    DescribedTenant,
    DescribedTenants,
    Tenant,
)
from broker_engine.client.controller_calls import ControllerCalls
from broker_engine.client.errors import KafkaError, error_for
from broker_engine.errors import ErrorCode
from broker_engine.wire.messages import internal_alter_credentials as credentials_api
from broker_engine.wire.messages import internal_alter_tenants as tenants_api
from broker_engine.wire.messages import internal_describe_tenants as describe_api


class TenantsAdmin(ControllerCalls):
    async def alter_tenants(self, tenants: Iterable[Tenant]) -> dict[str, KafkaError | None]:
        """Create, change or (with `deleted`) remove tenants. `policy_json` is the engine's part of the policy."""
        request = tenants_api.AlterTenantsRequest(
            tenants=[
                tenants_api.AlterTenantsTenant(
                    tenant_id=one.tenant_id,
                    cluster_id=one.cluster_id,
                    policy_json=one.policy_json,
                    deleted=one.deleted,
                )
                for one in tenants
            ]
        )
        answer = tenants_api.AlterTenantsResponse
        response = await self._ask_controller(request, answer, lambda got: (one.error_code for one in got.results))
        return {
            one.tenant_id: _outcome(one.error_code, one.error_message, f"tenant {one.tenant_id!r}")
            for one in response.results
        }

    async def alter_credentials(self, credentials: Iterable[Credential]) -> dict[str, KafkaError | None]:
        """Store or (with `deleted`) remove API keys, as verifiers only."""
        request = credentials_api.AlterCredentialsRequest(credentials=[_credential(one) for one in credentials])
        answer = credentials_api.AlterCredentialsResponse
        response = await self._ask_controller(request, answer, lambda got: (one.error_code for one in got.results))
        return {
            one.username: _outcome(one.error_code, one.error_message, f"credential {one.username!r}")
            for one in response.results
        }

    async def describe_tenants(self, tenant_ids: Iterable[str] | None = None) -> DescribedTenants:
        """What the engine holds: of these tenants, or of all."""
        request = describe_api.DescribeTenantsRequest(tenant_ids=None if tenant_ids is None else list(tenant_ids))
        response = await self._client.ask_any(request, describe_api.DescribeTenantsResponse)
        if response.error_code != ErrorCode.NONE:
            raise error_for(response.error_code, None, "describe tenants")
        return DescribedTenants(
            {
                one.tenant_id: DescribedTenant(
                    one.tenant_id, one.cluster_id, one.policy_json, one.topic_count, one.partition_count
                )
                for one in response.tenants
            },
            {one.username: _described(one) for one in response.credentials},
        )


def _outcome(code: int, message: str | None, context: str) -> KafkaError | None:
    return None if code == ErrorCode.NONE else error_for(code, message, context)


def _credential(one: Credential) -> credentials_api.AlterCredentialsCredential:
    return credentials_api.AlterCredentialsCredential(
        username=one.username,
        tenant_id=one.tenant_id,
        principal=one.principal,
        mechanisms=[
            credentials_api.AlterCredentialsMechanism(
                mechanism=verifier.mechanism,
                salt=verifier.salt,
                iterations=verifier.iterations,
                stored_key=verifier.stored_key,
                server_key=verifier.server_key,
            )
            for verifier in one.verifiers
        ],
        deleted=one.deleted,
    )


def _described(one: describe_api.DescribeTenantsCredential) -> DescribedCredential:
    mechanisms = tuple(
        DescribedMechanism(each.mechanism, bytes(each.salt), each.iterations, bytes(each.stored_key))
        for each in one.mechanisms
    )
    return DescribedCredential(one.username, one.tenant_id, one.principal, mechanisms)
