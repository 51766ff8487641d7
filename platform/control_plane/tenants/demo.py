"""The demo tenant of a development machine, and the file that keeps its generated passwords.

Idempotent: what is there stays; what is missing, in the database or in the file, is made anew, so that the file always
tells what works.
"""

from __future__ import annotations

import json
import os
import secrets
from dataclasses import asdict, dataclass, field
from pathlib import Path

from control_plane.accounts.models import User
from control_plane.keys.actions import create_key, revoke_key
from control_plane.keys.models import ApiKey
from control_plane.keys.verifiers import matches
from control_plane.tenants.actions import create_project, create_tenant
from control_plane.tenants.models import Membership, Project, Role, Tenant

ACTOR = "bootstrap_demo"
TENANT_ID = "demo"
PROJECT = "default"
OPERATOR_EMAIL = "operator@highwater.local"
MEMBER_EMAIL = "demo@highwater.local"
KEY_NAME = "demo key"


@dataclass(frozen=True, slots=True)
class DemoCredentials:
    operator_email: str = OPERATOR_EMAIL
    operator_password: str = field(default_factory=lambda: secrets.token_urlsafe(12))
    email: str = MEMBER_EMAIL
    password: str = field(default_factory=lambda: secrets.token_urlsafe(12))
    tenant: str = TENANT_ID
    api_key: str = ""
    api_secret: str = ""


def bootstrap(path: Path) -> DemoCredentials:
    known = read_credentials(path) or DemoCredentials()
    tenant = _tenant()
    _account(known.operator_email, known.operator_password, "Operator", is_operator=True)
    member = _account(known.email, known.password, "Demo")
    Membership.objects.get_or_create(tenant=tenant, user=member, defaults={"role": Role.OWNER})
    key_id, secret = _key(tenant, known)
    credentials = DemoCredentials(**{**asdict(known), "api_key": key_id, "api_secret": secret})
    if credentials != read_credentials(path):
        write_credentials(path, credentials)
    return credentials


def read_credentials(path: Path) -> DemoCredentials | None:
    if not path.exists():
        return None
    return DemoCredentials(**json.loads(path.read_text(encoding="utf-8")))


def write_credentials(path: Path, credentials: DemoCredentials) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_suffix(".new")
    with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8") as file:
        json.dump(asdict(credentials), file, indent=2)
    draft.replace(path)


def _tenant() -> Tenant:
    tenant = Tenant.objects.filter(pk=TENANT_ID).first()
    if tenant is None:
        tenant = create_tenant(actor=ACTOR, tenant_id=TENANT_ID, name="Demo")
    if not Project.objects.filter(tenant=tenant, slug=PROJECT).exists():
        create_project(actor=ACTOR, tenant=tenant, name=PROJECT)
    return tenant


def _account(email: str, password: str, name: str, *, is_operator: bool = False) -> User:
    user = User.objects.filter(email=email).first()
    if user is None:
        return User.objects.create_user(email, password, name=name, is_operator=is_operator)
    if not user.check_password(password):
        user.set_password(password)
        user.save(update_fields=["password"])
    return user


def _key(tenant: Tenant, known: DemoCredentials) -> tuple[str, str]:
    key = ApiKey.objects.filter(pk=known.api_key, tenant=tenant, revoked_at=None).first()
    if key is not None and matches(key.verifiers, known.api_secret):
        return key.id, known.api_secret
    for old in ApiKey.objects.filter(tenant=tenant, name=KEY_NAME, created_by=ACTOR, revoked_at=None):
        revoke_key(actor=ACTOR, key=old)  # its secret is lost: nobody can use it any more
    made, secret = create_key(actor=ACTOR, tenant=tenant, name=KEY_NAME)
    return made.id, secret
