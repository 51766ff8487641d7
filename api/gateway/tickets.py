"""Tickets for browsers, which cannot put a header on a WebSocket: random, for one use, good for 30 seconds.

A ticket stands for its maker, not for a copy of the maker's rights: whoever redeems it is looked up again. They lie in
Django's cache: of the process, or in Redis where several processes serve.
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass

from django.core.cache import cache

from api.authentication import Caller, caller_for
from api.problems import ProblemError
from control_plane.accounts.models import User
from control_plane.keys.queries import active_key
from control_plane.tenants.models import Role

LIFE_S = 30


@dataclass(frozen=True, slots=True)
class Holder:
    """Who somebody is, so that it can be asked later whether they still may. Exactly one of the last two is set."""

    tenant_id: str
    user_id: int | None
    key_id: str | None


def holder_of(caller: Caller) -> Holder:
    user_id = None if caller.user is None else int(caller.user.pk)
    return Holder(str(caller.tenant.pk), user_id, None if caller.key is None else str(caller.key.pk))


def issue(caller: Caller) -> str:
    ticket = secrets.token_urlsafe(32)
    cache.set(_cache_key(ticket), holder_of(caller), LIFE_S)
    return ticket


def redeem(ticket: str) -> Caller | None:
    """The caller as of now; None for a ticket that is unknown, used, expired, or whose maker has lost the right."""
    key = _cache_key(ticket)
    holder = cache.get(key)
    # Of two that redeem at once, delete() is true for one.
    if holder is None or not cache.delete(key):
        return None
    return still_allowed(holder)


def still_allowed(holder: Holder) -> Caller | None:
    if holder.key_id is not None:
        key = active_key(holder.key_id)
        if key is None:
            return None
        return Caller(tenant=key.tenant, principal=key.principal, role=Role.DEVELOPER.value, name=key.id, key=key)
    user = User.objects.filter(pk=holder.user_id or 0, is_active=True).first()
    try:
        return None if user is None else caller_for(user, holder.tenant_id)
    except ProblemError:
        return None


def _cache_key(ticket: str) -> str:
    return f"ws-ticket:{ticket[:100]}"
