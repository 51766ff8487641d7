"""Who is calling, and for which tenant. One function for DRF views, async views and WebSockets.

Two ways: an API key by HTTP Basic, or a session cookie (then unsafe methods must pass the CSRF check). The tenant is
the key's, or for a person the one named by X-Highwater-Tenant, else their first. A tenant that the caller does not
belong to answers exactly as one that does not exist.
"""

from __future__ import annotations

import base64
import binascii
from dataclasses import dataclass

from asgiref.sync import sync_to_async
from django.http import HttpRequest, HttpResponse
from rest_framework.authentication import BaseAuthentication, CSRFCheck
from rest_framework.request import Request

from api import problems, throttle
from api.exceptions import SESSION_CHALLENGE
from api.problems import ProblemError
from api.secret_cache import SecretCache
from control_plane.accounts.models import User
from control_plane.keys.actions import note_use
from control_plane.keys.models import ApiKey
from control_plane.keys.queries import active_key
from control_plane.keys.verifiers import new_secret_with_verifiers
from control_plane.tenants.models import Role, Tenant
from control_plane.tenants.queries import tenant_for

TENANT_HEADER = "X-Highwater-Tenant"
BASIC_CHALLENGE = 'Basic realm="highwater", charset="UTF-8"'
SAFE_METHODS = ("GET", "HEAD", "OPTIONS", "TRACE")
RANK = {Role.VIEWER.value: 0, Role.DEVELOPER.value: 1, Role.OWNER.value: 2}

_secrets = SecretCache()
# Unknown key ids cost the same PBKDF2 as known ones, so that time tells nobody which ids exist.
_nobody = ApiKey(id="nobody", verifiers=new_secret_with_verifiers()[1])


@dataclass(frozen=True, slots=True)
class Caller:
    tenant: Tenant
    principal: str  # what the engine sees: the key's id, or user-<pk>
    role: str  # owner, developer or viewer
    name: str  # what the audit trail says: an e-mail address or the key's id
    user: User | None = None
    key: ApiKey | None = None
    is_authenticated: bool = True  # DRF's permission classes ask for it

    def require(self, role: Role | str) -> None:
        """Raise 403 unless the caller's role is at least that."""
        if RANK[self.role] < RANK[str(role)]:
            raise ProblemError(problems.forbidden(f"This needs the role {role}; yours is {self.role}"))

    def require_person(self) -> None:
        if self.user is None:
            raise ProblemError(problems.forbidden("API keys may not do this: a signed-in person can"))

    def require_operator(self) -> None:
        if self.user is None or not self.user.is_operator:
            raise ProblemError(problems.forbidden("This is for operators of the platform"))


def authenticate_request(request: HttpRequest) -> Caller:
    """The caller, or ProblemError: 401, 403 (CSRF), 404 (tenant), 429. Touches the database."""
    if request.headers.get("Authorization"):
        return _by_key(request)
    user = session_user(request)
    if user is None:
        raise ProblemError(problems.unauthenticated("Sign in, or send an API key", challenge=SESSION_CHALLENGE))
    if request.method not in SAFE_METHODS:
        enforce_csrf(request)
    return caller_for(user, request.headers.get(TENANT_HEADER))


authenticate_request_async = sync_to_async(authenticate_request, thread_sensitive=True)


def caller_for(user: User, tenant_id: str | None) -> Caller:
    found = tenant_for(user, tenant_id)
    if found is None and tenant_id is None:
        raise ProblemError(problems.forbidden("You are not a member of any tenant"))
    if found is None:
        raise ProblemError(problems.not_found(f"There is no tenant {tenant_id!r}"))
    tenant, role = found
    return Caller(tenant=tenant, principal=user.principal, role=role, name=user.email, user=user)


def session_user(request: HttpRequest) -> User | None:
    user = request.user
    return user if isinstance(user, User) and user.is_active else None


def enforce_csrf(request: HttpRequest) -> None:
    check = CSRFCheck(_never_called)
    check.process_request(request)
    reason = check.process_view(request, _never_called, (), {})
    if reason:
        raise ProblemError(problems.csrf_failed(f"{reason} Send the csrf_token of GET /session as X-CSRFToken"))


def client_address(request: HttpRequest) -> str:
    """The peer's address. Forwarded headers are the ASGI server's business: anyone can write them."""
    return str(request.META.get("REMOTE_ADDR") or "")


def _by_key(request: HttpRequest) -> Caller:
    key_id, secret = _basic_pair(request.headers["Authorization"])
    key = active_key(key_id)
    if not _secrets.is_right(key or _nobody, secret) or key is None:
        # Only wrong secrets are slowed down: 256 random bits cannot be guessed, and one stale job on a host must not
        # lock out the others that have the key right.
        address = client_address(request)
        throttle.check(key_id, address)
        throttle.failed(key_id, address)
        raise ProblemError(problems.unauthenticated("The API key or its secret is wrong", challenge=BASIC_CHALLENGE))
    named = request.headers.get(TENANT_HEADER)
    if named is not None and named != key.tenant_id:
        raise ProblemError(problems.not_found(f"There is no tenant {named!r}"))
    note_use(key)
    return Caller(tenant=key.tenant, principal=key.principal, role=Role.DEVELOPER.value, name=key.id, key=key)


def _basic_pair(header: str) -> tuple[str, str]:
    scheme, _, text = header.partition(" ")
    try:
        pair = base64.b64decode(text.strip(), validate=True).decode() if scheme.lower() == "basic" else ""
    except (binascii.Error, UnicodeDecodeError):
        pair = ""
    key_id, colon, secret = pair.partition(":")
    if not colon:
        detail = "The Authorization header must be Basic with key-id:secret"
        raise ProblemError(problems.unauthenticated(detail, challenge=BASIC_CHALLENGE))
    return key_id, secret


def _never_called(request: HttpRequest) -> HttpResponse:
    raise AssertionError("the CSRF check only looks, it never calls on")


class CallerAuthentication(BaseAuthentication):
    """DRF's view of `authenticate_request`: request.user is the Caller."""

    def authenticate(self, request: Request) -> tuple[Caller, None]:
        return authenticate_request(request._request), None

    def authenticate_header(self, request: Request) -> str:
        return SESSION_CHALLENGE


def caller_of(request: Request) -> Caller:
    assert isinstance(request.user, Caller)
    return request.user
