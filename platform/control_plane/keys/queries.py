"""Reading API keys. Listing and looking up name the tenant; only signing in asks by id alone."""

from __future__ import annotations

from django.db.models import QuerySet

from control_plane.keys.models import ApiKey
from control_plane.refusals import NotFound
from control_plane.tenants.models import Tenant


def keys_of(tenant: Tenant) -> QuerySet[ApiKey]:
    return ApiKey.objects.filter(tenant=tenant)


def key_of(tenant: Tenant, key_id: str) -> ApiKey:
    key = keys_of(tenant).select_related("tenant").filter(pk=key_id).first()
    if key is None:
        raise NotFound(f"There is no API key {key_id!r}")
    return key


def active_key(key_id: str) -> ApiKey | None:
    return ApiKey.objects.select_related("tenant").filter(pk=key_id, revoked_at=None).first()
