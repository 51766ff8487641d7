"""Reading topics. Every question names its tenant, so that nobody can ask across the wall."""

from __future__ import annotations

from django.db.models import Count, QuerySet, Sum

from control_plane.refusals import NotFound
from control_plane.tenants.models import Tenant
from control_plane.topics.models import State, Topic
from control_plane.topics.rules import LEGAL_NAME, Quota


def topics_of(tenant: Tenant, *, contains: str = "", project: str = "") -> QuerySet[Topic]:
    topics = Topic.objects.filter(tenant=tenant).select_related("project")
    if contains:
        topics = topics.filter(name__icontains=contains)
    return topics.filter(project__slug=project) if project else topics


def topic_of(tenant: Tenant, name: str) -> Topic:
    # An illegal name is looked up nowhere: PostgreSQL would choke on some of them.
    topic = topics_of(tenant).filter(name=name).first() if LEGAL_NAME.fullmatch(name) else None
    if topic is None:
        raise NotFound(f"There is no topic {name!r}")
    return topic


def quota_of(tenant: Tenant, *, without: str = "") -> Quota:
    """What the tenant uses of its quota; a topic that is being deleted counts until the engine has let it go."""
    used = (
        Topic.objects.filter(tenant=tenant)
        .exclude(name=without)
        .exclude(state=State.FAILED, observed_generation=0)
        .aggregate(topics=Count("pk"), partitions=Sum("partitions", default=0))
    )
    return Quota(
        topics_used=used["topics"],
        topics_max=tenant.topics_max,
        partitions_used=used["partitions"],
        partitions_max=tenant.partitions_max,
    )
