"""Drift of tenants and credentials: push what the engine lacks or has otherwise; take away what was revoked.

What the engine has and we do not know is left alone: it may be an operator's, or newer than a restored database.
"""

from __future__ import annotations

from collections.abc import Mapping

from control_plane.engine.deadline import Deadline
from control_plane.engine.interface import Credential, CredentialView, Engine, Inventory
from control_plane.keys.models import ApiKey
from control_plane.keys.push import credential_of
from control_plane.tenants.models import Tenant
from control_plane.tenants.push import view_of


def mend_identities(engine: Engine, deadline: Deadline) -> int:
    """How many things had to be mended."""
    there = engine.inventory(timeout_s=deadline.left_s())
    return _mend_tenants(engine, there, deadline) + _mend_credentials(engine, there, deadline)


def _mend_tenants(engine: Engine, there: Inventory, deadline: Deadline) -> int:
    wanted = [view_of(tenant) for tenant in Tenant.objects.all()]
    missing = [view for view in wanted if there.tenants.get(view.tenant) != view]
    if missing:
        engine.push_tenants(missing, timeout_s=deadline.left_s())
    return len(missing)


def _mend_credentials(engine: Engine, there: Inventory, deadline: Deadline) -> int:
    wanted = [credential_of(key) for key in ApiKey.objects.filter(revoked_at=None)]
    missing = [credential for credential in wanted if not _is_there(credential, there.credentials)]
    if missing:
        engine.push_credentials(missing, timeout_s=deadline.left_s())
    revoked = list(
        ApiKey.objects.filter(pk__in=list(there.credentials), revoked_at__isnull=False).values_list("pk", flat=True)
    )
    if revoked:
        engine.remove_credentials(revoked, timeout_s=deadline.left_s())
    return len(missing) + len(revoked)


def _is_there(credential: Credential, there: Mapping[str, CredentialView]) -> bool:
    view = there.get(credential.username)
    if view is None or view.tenant != credential.tenant:
        return False
    return view.stored_keys == {(verifier.mechanism, verifier.stored_key) for verifier in credential.verifiers}
