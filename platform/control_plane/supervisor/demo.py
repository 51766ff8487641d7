"""What a development machine starts with: the demo tenant in database and engine, a topic for the first commands."""

from __future__ import annotations

from pathlib import Path

from control_plane.drift.identities import mend_identities
from control_plane.engine.deadline import Deadline
from control_plane.engine.factory import get_engine
from control_plane.tenants.demo import ACTOR, DemoCredentials, bootstrap
from control_plane.tenants.models import Tenant
from control_plane.topics.actions import create_topic
from control_plane.topics.models import Topic

TOPIC = "hello"
PARTITIONS = 3
ENGINE_WITHIN_S = 20.0


def prepare_demo(home: Path) -> DemoCredentials:
    """May be called at every start: makes only what is missing."""
    credentials = bootstrap(home / "demo-credentials.json")
    tenant = Tenant.objects.get(pk=credentials.tenant)
    push_identities()
    if not Topic.objects.filter(tenant=tenant, name=TOPIC).exists():
        create_topic(actor=ACTOR, tenant=tenant, name=TOPIC, partitions=PARTITIONS)
    return credentials


def push_identities() -> None:
    """Tenants and keys into the engine, so that the first client to knock is known there."""
    mend_identities(get_engine(), Deadline.after(ENGINE_WITHIN_S))
