"""Every write of an API key. The secret exists once, in the answer to its maker."""

from __future__ import annotations

import secrets
from datetime import timedelta
from functools import partial

from django.db import transaction
from django.db.models import Q
from django.utils import timezone

from control_plane.audit.actions import record
from control_plane.celery import enqueue
from control_plane.keys import tasks
from control_plane.keys.models import ApiKey
from control_plane.keys.push import push_key
from control_plane.keys.verifiers import new_secret_with_verifiers
from control_plane.refusals import Conflict
from control_plane.tenants.models import Tenant

IN_REQUEST_S = 5.0
ACTIVE_KEYS_MAX = 200
LAST_USED_STEP = timedelta(minutes=1)
ID_ALPHABET = "ABCDEFGHJKLMNPQRSTUVWXYZ23456789"


def create_key(*, actor: str, tenant: Tenant, name: str) -> tuple[ApiKey, str]:
    """The key and its secret. Nobody can read the secret again."""
    secret, verifiers = new_secret_with_verifiers()
    with transaction.atomic():
        Tenant.objects.select_for_update().get(pk=tenant.pk)
        if ApiKey.objects.filter(tenant=tenant, revoked_at=None).count() >= ACTIVE_KEYS_MAX:
            raise Conflict(f"A tenant has at most {ACTIVE_KEYS_MAX} active keys: revoke one first")
        key = ApiKey.objects.create(id=new_key_id(), tenant=tenant, name=name, verifiers=verifiers, created_by=actor)
        record(actor=actor, verb="api_key.created", target=key.id, tenant=tenant, after={"name": name})
        transaction.on_commit(partial(settle, key.id))
    return key, secret


def revoke_key(*, actor: str, key: ApiKey) -> ApiKey:
    """Revoking twice changes nothing the second time, but makes sure of the engine again."""
    with transaction.atomic():
        now = timezone.now()
        if ApiKey.objects.filter(pk=key.pk, revoked_at=None).update(revoked_at=now):
            record(actor=actor, verb="api_key.revoked", target=key.id, tenant=key.tenant, before={"name": key.name})
        transaction.on_commit(partial(settle, key.id))
    key.refresh_from_db()
    return key


def settle(key_id: str) -> None:
    if not push_key(key_id, budget_s=IN_REQUEST_S):
        enqueue(tasks.push, key_id)


def note_use(key: ApiKey) -> None:
    """Remember that the key was used, to the minute: a busy key must not cost one write per request."""
    now = timezone.now()
    if key.last_used_at is None or now - key.last_used_at > LAST_USED_STEP:
        stale = Q(last_used_at=None) | Q(last_used_at__lt=now - LAST_USED_STEP)
        ApiKey.objects.filter(stale, pk=key.pk).update(last_used_at=now)


def new_key_id() -> str:
    """80 random bits, letters and digits only: it stands in user:password pairs and in principals."""
    return "HW" + "".join(secrets.choice(ID_ALPHABET) for _ in range(16))
