"""Reading API keys. Listing and looking up name the tenant; only signing in asks by id alone."""

from __future__ import annotations

from django.db.models import QuerySet

from control_plane.keys.models import ApiKey
from control_plane.refusals import NotFound
from control_plane.tenants.models import Tenant

KEY_ID_LENGTH_MAX = 32


def keys_of(tenant: Tenant) -> QuerySet[ApiKey]:
    return ApiKey.objects.filter(tenant=tenant)


def key_of(tenant: Tenant, key_id: str) -> ApiKey:
    key = keys_of(tenant).select_related("tenant").filter(pk=key_id).first() if is_key_id(key_id) else None
    if key is None:
        raise NotFound(f"There is no API key {key_id!r}")
    return key


def active_key(key_id: str) -> ApiKey | None:
    if not is_key_id(key_id):
        return None
    return ApiKey.objects.select_related("tenant").filter(pk=key_id, revoked_at=None).first()


def is_key_id(text: str) -> bool:
    return len(text) <= KEY_ID_LENGTH_MAX and text.isascii() and text.isalnum()
