"""Writing the audit trail. Call it inside the transaction of the deed itself."""

from __future__ import annotations

from collections.abc import Mapping

from control_plane.audit.models import AuditEntry
from control_plane.tenants.models import Tenant

SYSTEM = "system"


def record(
    *,
    actor: str,
    verb: str,
    target: str,
    tenant: Tenant | None,
    before: Mapping[str, object] | None = None,
    after: Mapping[str, object] | None = None,
) -> AuditEntry:
    return AuditEntry.objects.create(
        actor=actor, verb=verb, target=target, tenant=tenant, before=_plain(before), after=_plain(after)
    )


def _plain(facts: Mapping[str, object] | None) -> dict[str, object] | None:
    return None if facts is None else dict(facts)
