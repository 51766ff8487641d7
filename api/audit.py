"""/audit: who did what in this tenant, newest first."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from api.authentication import caller_of
from api.pagination import PageQuery, page_of, page_serializer, read_query
from control_plane.audit.models import AuditEntry
from control_plane.audit.queries import entries_of


class AuditDetail(serializers.Serializer):
    before = serializers.JSONField(allow_null=True)
    after = serializers.JSONField(allow_null=True)


class AuditOut(serializers.Serializer):
    id = serializers.IntegerField()
    at = serializers.DateTimeField()
    actor = serializers.CharField()
    verb = serializers.CharField()
    target = serializers.CharField()
    detail = AuditDetail()


class AuditView(APIView):
    @extend_schema(operation_id="audit_list", parameters=[PageQuery], responses=page_serializer("AuditPage", AuditOut))
    def get(self, request: Request) -> Response:
        query = read_query(request, PageQuery)
        entries = entries_of(caller_of(request).tenant)
        return Response(page_of(entries, key="id", query=query, show=show_entry, descending=True))


def show_entry(entry: AuditEntry) -> dict[str, Any]:
    return {
        "id": entry.pk,
        "at": entry.at,
        "actor": entry.actor,
        "verb": entry.verb,
        "target": entry.target,
        "detail": {"before": entry.before, "after": entry.after},
    }
