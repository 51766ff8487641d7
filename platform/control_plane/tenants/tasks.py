"""Celery's part for tenants."""

from __future__ import annotations

from control_plane.celery import task
from control_plane.tenants.push import push_tenant

IN_BACKGROUND_S = 30.0


@task("control_plane.tenants.tasks.push")
def push(tenant_id: str) -> None:
    push_tenant(tenant_id, budget_s=IN_BACKGROUND_S)
