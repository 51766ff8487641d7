"""The wish for a topic, and how far the engine has come with it.

    creating -> ready <-> updating
        any -> deleting -> (row removed)
        creating, updating -> failed        the engine said no for good; a new wish (a higher generation) starts again

`generation` counts wishes, `observed_generation` is the last one that the engine was seen to fulfil: a wish is open
while they differ. Code that reports an outcome compares the generation it worked for, so a newer wish is never lost.
"""

from __future__ import annotations

import base64

from django.db import models

from control_plane.tenants.models import Project, Tenant


class State(models.TextChoices):
    CREATING = "creating"
    READY = "ready"
    UPDATING = "updating"
    DELETING = "deleting"
    FAILED = "failed"


class Origin(models.TextChoices):
    CONTROL_PLANE = "control-plane"
    ENGINE = "engine"  # born of a Kafka client, adopted by drift repair


class Topic(models.Model):
    tenant = models.ForeignKey(Tenant, on_delete=models.PROTECT, related_name="topics")
    name = models.CharField(max_length=249)
    project = models.ForeignKey(Project, on_delete=models.PROTECT, null=True, related_name="topics")
    partitions = models.PositiveIntegerField()
    replication_factor = models.PositiveSmallIntegerField(null=True)  # null until known: the engine's default
    configs = models.JSONField(default=dict)  # {name: text}, only what is set on the topic itself

    state = models.CharField(max_length=16, choices=State.choices, default=State.CREATING)
    status_detail = models.CharField(max_length=1000, blank=True, default="")
    generation = models.PositiveIntegerField(default=1)
    observed_generation = models.PositiveIntegerField(default=0)
    topic_id = models.UUIDField(null=True)

    origin = models.CharField(max_length=16, choices=Origin.choices, default=Origin.CONTROL_PLANE)
    created_at = models.DateTimeField(auto_now_add=True)
    created_by = models.CharField(max_length=254)

    class Meta:
        ordering = ("name",)
        constraints = [models.UniqueConstraint(fields=["tenant", "name"], name="one_topic_per_tenant_and_name")]

    def __str__(self) -> str:
        return f"{self.tenant_id}/{self.name}"

    @property
    def kafka_id(self) -> str | None:
        """The id as Kafka's tools and our telemetry write it: 22 characters of URL-safe base64."""
        if self.topic_id is None:
            return None
        return base64.urlsafe_b64encode(self.topic_id.bytes).rstrip(b"=").decode("ascii")

    @property
    def is_open_wish(self) -> bool:
        return self.observed_generation != self.generation and self.state != State.FAILED
