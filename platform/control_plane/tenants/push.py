"""Telling the engine of a tenant: its cluster id and the policy that the engine itself enforces."""

from __future__ import annotations

import logging

from control_plane.engine.factory import get_engine
from control_plane.engine.interface import EngineError, TenantView
from control_plane.tenants.models import Tenant
from control_plane.tenants.policy import engine_policy

log = logging.getLogger(__name__)


def view_of(tenant: Tenant) -> TenantView:
    return TenantView(tenant.id, tenant.cluster_id, engine_policy(tenant))


def push_tenant(tenant_id: str, *, budget_s: float) -> bool:
    """True when the engine has it."""
    tenant = Tenant.objects.get(pk=tenant_id)
    try:
        get_engine().push_tenants([view_of(tenant)], timeout_s=budget_s)
    except EngineError as error:
        log.warning("tenant %s waits for the engine: %s", tenant_id, error)
        return False
    return True
