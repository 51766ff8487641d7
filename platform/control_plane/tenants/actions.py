"""Every write of tenants, memberships and projects, each with its audit entry in the same transaction."""

from __future__ import annotations

import re
from functools import partial

from django.core.exceptions import ValidationError
from django.db import IntegrityError, transaction
from django.utils.text import slugify

from control_plane.accounts.models import User
from control_plane.audit.actions import record
from control_plane.celery import enqueue
from control_plane.refusals import Conflict, Invalid
from control_plane.tenants import tasks
from control_plane.tenants.models import TENANT_ID_PATTERN, Membership, Project, Role, Tenant
from control_plane.tenants.push import push_tenant

IN_REQUEST_S = 5.0
PROJECTS_MAX = 100


def create_tenant(*, actor: str, tenant_id: str, name: str, **values: object) -> Tenant:
    with transaction.atomic():
        tenant = Tenant(id=tenant_id, name=name, **values)
        try:
            tenant.full_clean()
        except ValidationError as error:
            field, messages = next(iter(error.message_dict.items()))
            raise Invalid(field, messages[0]) from None
        tenant.save(force_insert=True)
        record(actor=actor, verb="tenant.created", target=tenant_id, tenant=tenant, after={"name": name})
        transaction.on_commit(partial(settle, tenant_id))
    return tenant


def settle(tenant_id: str) -> None:
    if not push_tenant(tenant_id, budget_s=IN_REQUEST_S):
        enqueue(tasks.push, tenant_id)


@transaction.atomic
def add_member(*, actor: str, tenant: Tenant, email: str, role: str) -> Membership:
    """The account must exist: were an owner to make it, they would know the password of whoever it is named after."""
    user = User.objects.filter(email=email.strip().lower(), is_active=True).first()
    if user is None:
        raise Invalid("email", "There is no account with this address: an operator can make one")
    try:
        with transaction.atomic():
            member = Membership.objects.create(tenant=tenant, user=user, role=role)
    except IntegrityError:
        raise Conflict(f"{user.email} is a member already") from None
    record(actor=actor, verb="member.added", target=user.email, tenant=tenant, after={"role": role})
    return member


@transaction.atomic
def change_role(*, actor: str, member: Membership, role: str) -> Membership:
    _keep_an_owner(member, role)
    before, member.role = member.role, role
    member.save(update_fields=["role"])
    record(
        actor=actor,
        verb="member.changed",
        target=member.user.email,
        tenant=member.tenant,
        before={"role": before},
        after={"role": role},
    )
    return member


@transaction.atomic
def remove_member(*, actor: str, member: Membership) -> None:
    _keep_an_owner(member, None)
    email, tenant, role = member.user.email, member.tenant, member.role
    member.delete()
    record(actor=actor, verb="member.removed", target=email, tenant=tenant, before={"role": role})


@transaction.atomic
def create_project(*, actor: str, tenant: Tenant, name: str, slug: str | None = None) -> Project:
    if Project.objects.filter(tenant=tenant).count() >= PROJECTS_MAX:
        raise Conflict(f"A tenant has at most {PROJECTS_MAX} projects")
    slug = slugify(name)[:63] if slug is None else slug
    if not re.fullmatch(TENANT_ID_PATTERN, slug):
        raise Invalid("id" if slug else "name", f"A project's id matches {TENANT_ID_PATTERN}")
    try:
        with transaction.atomic():
            project = Project.objects.create(tenant=tenant, slug=slug, name=name)
    except IntegrityError:
        raise Conflict(f"There is a project {slug!r} already") from None
    record(actor=actor, verb="project.created", target=slug, tenant=tenant, after={"name": name})
    return project


def _keep_an_owner(member: Membership, role: str | None) -> None:
    """A tenant without an owner could not be helped by anyone inside it."""
    Tenant.objects.select_for_update().get(pk=member.tenant_id)
    others = Membership.objects.filter(tenant=member.tenant, role=Role.OWNER).exclude(pk=member.pk)
    if member.role == Role.OWNER and role != Role.OWNER and not others.exists():
        raise Conflict(f"{member.user.email} is the last owner of {member.tenant_id}")
