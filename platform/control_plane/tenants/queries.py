"""Who belongs where. Every question names its tenant or its user."""

from __future__ import annotations

from django.db.models import QuerySet

from control_plane.accounts.models import User
from control_plane.refusals import NotFound
from control_plane.tenants.models import Membership, Project, Role, Tenant


def tenants_of(user: User) -> list[tuple[Tenant, str]]:
    """The tenants a user may act in, with the role there; an operator is an owner everywhere."""
    if user.is_operator:
        return [(tenant, Role.OWNER.value) for tenant in Tenant.objects.all()]
    return [(member.tenant, member.role) for member in user.memberships.select_related("tenant")]


def tenant_for(user: User, tenant_id: str | None) -> tuple[Tenant, str] | None:
    """The named tenant, or the user's first. None where there is none for this user."""
    if user.is_operator:
        tenants = Tenant.objects.all() if tenant_id is None else Tenant.objects.filter(pk=tenant_id)
        tenant = tenants.first()
        return None if tenant is None else (tenant, Role.OWNER.value)
    members = user.memberships.select_related("tenant")
    member = (members if tenant_id is None else members.filter(tenant_id=tenant_id)).first()
    return None if member is None else (member.tenant, member.role)


def members_of(tenant: Tenant) -> QuerySet[Membership]:
    return Membership.objects.filter(tenant=tenant).select_related("user", "tenant")


def member_of(tenant: Tenant, member_id: int) -> Membership:
    member = members_of(tenant).filter(pk=member_id).first()
    if member is None:
        raise NotFound(f"There is no member {member_id}")
    return member


def projects_of(tenant: Tenant) -> QuerySet[Project]:
    return Project.objects.filter(tenant=tenant)
