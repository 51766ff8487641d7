"""Tenants, who belongs to them, and the projects that divide them.

A tenant's id never changes and is never used again: topics, keys and usage in the engine are bound to it. So a tenant
is never deleted from this table.
Policy is inherited: tenant -> project -> topic. A project's null means "as the tenant says".
"""

from __future__ import annotations

import secrets

from django.conf import settings
from django.core.validators import RegexValidator
from django.db import models

TENANT_ID_PATTERN = r"[a-z0-9][a-z0-9-]{0,62}"
CLUSTER_ID_ALPHABET = "abcdefghijkmnpqrstuvwxyz23456789"


def new_cluster_id() -> str:
    """`lkc-` is what Confluent's Terraform provider asks of a cluster id."""
    return "lkc-" + "".join(secrets.choice(CLUSTER_ID_ALPHABET) for _ in range(8))


class PolicyFields(models.Model):
    """The bounds inside which topics may be made. Null: no bound here."""

    name_pattern = models.CharField(max_length=200, null=True, blank=True)  # noqa: DJ001 (null = inherit)
    partitions_per_topic_max = models.PositiveIntegerField(null=True, blank=True)
    retention_ms_min = models.BigIntegerField(null=True, blank=True)
    retention_ms_max = models.BigIntegerField(null=True, blank=True)
    replication_factor_min = models.PositiveSmallIntegerField(null=True, blank=True)
    replication_factor_max = models.PositiveSmallIntegerField(null=True, blank=True)
    allowed_configs = models.JSONField(null=True, blank=True)  # list of names
    default_partitions = models.PositiveIntegerField(null=True, blank=True)

    class Meta:
        abstract = True


class Tenant(PolicyFields):
    id = models.CharField(primary_key=True, max_length=63, validators=[RegexValidator(f"^{TENANT_ID_PATTERN}$")])
    name = models.CharField(max_length=200)
    cluster_id = models.CharField(max_length=32, unique=True, default=new_cluster_id)
    partitions_max = models.PositiveIntegerField(default=500)
    topics_max = models.PositiveIntegerField(default=200)
    auto_create = models.BooleanField(default=True)  # topics born on first use by a Kafka client, inside the policy
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ("id",)

    def __str__(self) -> str:
        return self.id


class Role(models.TextChoices):
    OWNER = "owner"
    DEVELOPER = "developer"
    VIEWER = "viewer"


class Membership(models.Model):
    tenant = models.ForeignKey(Tenant, on_delete=models.PROTECT, related_name="memberships")
    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="memberships")
    role = models.CharField(max_length=16, choices=Role.choices)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ("pk",)
        constraints = [models.UniqueConstraint(fields=["tenant", "user"], name="one_membership_per_tenant_and_user")]

    def __str__(self) -> str:
        return f"{self.user} is {self.role} of {self.tenant_id}"


class Project(PolicyFields):
    """A part of a tenant with its own policy. `slug` is its public id, unique inside the tenant."""

    tenant = models.ForeignKey(Tenant, on_delete=models.PROTECT, related_name="projects")
    slug = models.CharField(max_length=63, validators=[RegexValidator(f"^{TENANT_ID_PATTERN}$")])
    name = models.CharField(max_length=200)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ("slug",)
        constraints = [models.UniqueConstraint(fields=["tenant", "slug"], name="one_project_per_tenant_and_slug")]

    def __str__(self) -> str:
        return f"{self.tenant_id}:{self.slug}"
