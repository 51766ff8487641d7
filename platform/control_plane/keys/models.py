"""API keys. The secret is shown once and never stored: what stays are SCRAM verifiers, here and in the engine."""

from __future__ import annotations

from django.db import models

from control_plane.tenants.models import Tenant


class ApiKey(models.Model):
    id = models.CharField(primary_key=True, max_length=32)
    tenant = models.ForeignKey(Tenant, on_delete=models.PROTECT, related_name="api_keys")
    name = models.CharField(max_length=200)
    verifiers = models.JSONField()  # see keys.verifiers
    created_at = models.DateTimeField(auto_now_add=True)
    created_by = models.CharField(max_length=254)
    last_used_at = models.DateTimeField(null=True)
    revoked_at = models.DateTimeField(null=True)

    class Meta:
        ordering = ("created_at", "id")

    def __str__(self) -> str:
        return self.id

    @property
    def principal(self) -> str:
        return self.id

    @property
    def status(self) -> str:
        return "active" if self.revoked_at is None else "revoked"
