"""Who did what to what, written in the same transaction as the deed."""

from __future__ import annotations

from django.db import models

from control_plane.tenants.models import Tenant


class AuditEntry(models.Model):
    at = models.DateTimeField(auto_now_add=True)
    tenant = models.ForeignKey(Tenant, on_delete=models.PROTECT, null=True, related_name="audit_entries")
    actor = models.CharField(max_length=254)  # an e-mail address, an API key's id, or "system"
    verb = models.CharField(max_length=64)  # "topic.created"
    target = models.CharField(max_length=300)
    before = models.JSONField(null=True)
    after = models.JSONField(null=True)

    class Meta:
        ordering = ("-pk",)
        indexes = [models.Index(fields=["tenant", "-id"], name="audit_by_tenant")]

    def __str__(self) -> str:
        return f"{self.actor} {self.verb} {self.target}"
