"""URLs of the REST resources, included by `web.urls` under /api/v1/. The gateway's async views have their own."""

from __future__ import annotations

from django.urls import URLPattern, URLResolver, path
from drf_spectacular.views import SpectacularJSONAPIView, SpectacularSwaggerSplitView

import api.schema  # noqa: F401  (tells drf-spectacular how callers sign in)
from api.api_keys import ApiKeysView, ApiKeyView
from api.audit import AuditView
from api.cluster import ClusterBrokerView, ClusterElectionsView, ClusterPlanView, ClusterStateView
from api.groups import (
    GroupDetailView,
    GroupExportView,
    GroupLagView,
    GroupOffsetsView,
    GroupResetView,
    GroupsView,
    GroupTimelineView,
    TopicGroupsView,
)
from api.members import MembersView, MemberView
from api.partitions import PartitionsView
from api.projects import ProjectsView
from api.session import SessionView
from api.tenant import TenantView
from api.topics import TopicsView, TopicView

urlpatterns: list[URLPattern | URLResolver] = [
    path("session", SessionView.as_view()),
    path("tenant", TenantView.as_view()),
    path("members", MembersView.as_view()),
    path("members/<int:member_id>", MemberView.as_view()),
    path("projects", ProjectsView.as_view()),
    path("topics", TopicsView.as_view()),
    path("topics/<str:name>", TopicView.as_view()),
    path("topics/<str:name>/partitions", PartitionsView.as_view()),
    path("topics/<str:name>/groups", TopicGroupsView.as_view()),
    path("groups", GroupsView.as_view()),
    # A group's name may hold slashes: what comes after it is looked for first.
    path("groups/<path:name>:reset-offsets", GroupResetView.as_view()),
    path("groups/<path:name>/timeline", GroupTimelineView.as_view()),
    path("groups/<path:name>/lag", GroupLagView.as_view()),
    path("groups/<path:name>/offsets", GroupOffsetsView.as_view()),
    path("groups/<path:name>/offsets.csv", GroupExportView.as_view()),
    path("groups/<path:name>", GroupDetailView.as_view()),
    path("api-keys", ApiKeysView.as_view()),
    path("api-keys/<str:key_id>", ApiKeyView.as_view()),
    path("audit", AuditView.as_view()),
    path("cluster", ClusterStateView.as_view()),
    path("cluster/moves", ClusterPlanView.as_view()),
    path("cluster/elections", ClusterElectionsView.as_view()),
    path("cluster/brokers/<int:broker>", ClusterBrokerView.as_view()),
    path("schema", SpectacularJSONAPIView.as_view(), name="schema"),
    path("docs", SpectacularSwaggerSplitView.as_view(url_name="schema"), name="docs"),
]
