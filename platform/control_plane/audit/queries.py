"""Reading the audit trail of one tenant, newest first."""

from __future__ import annotations

from django.db.models import QuerySet

from control_plane.audit.models import AuditEntry
from control_plane.tenants.models import Tenant


def entries_of(tenant: Tenant) -> QuerySet[AuditEntry]:
    return AuditEntry.objects.filter(tenant=tenant)
