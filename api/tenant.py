"""/tenant: the caller's tenant, its quota and its policy."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from django.conf import settings
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from api.authentication import Caller, caller_of
from control_plane.tenants.policy import policy_in_force
from control_plane.topics.queries import quota_of


class QuotaUse(serializers.Serializer):
    limit = serializers.IntegerField()
    used = serializers.IntegerField()


class TenantQuota(serializers.Serializer):
    partitions = QuotaUse()
    topics = QuotaUse()


class TenantPolicy(serializers.Serializer):
    name_pattern = serializers.CharField(allow_null=True)
    max_partitions_per_topic = serializers.IntegerField()
    retention_ms_min = serializers.CharField(allow_null=True, help_text="int64 as text")
    retention_ms_max = serializers.CharField(allow_null=True, help_text="int64 as text")
    replication_factor_min = serializers.IntegerField(allow_null=True)
    replication_factor_max = serializers.IntegerField(allow_null=True)
    allowed_configs = serializers.ListField(child=serializers.CharField())
    default_partitions = serializers.IntegerField()
    auto_create = serializers.BooleanField()


class TenantOut(serializers.Serializer):
    id = serializers.CharField()
    name = serializers.CharField()
    cluster_id = serializers.CharField()
    role = serializers.CharField()
    kafka_bootstrap = serializers.CharField()
    quota = TenantQuota()
    policy = TenantPolicy()


class TenantView(APIView):
    @extend_schema(responses=TenantOut)
    def get(self, request: Request) -> Response:
        return Response(show_tenant(caller_of(request)))


def show_tenant(caller: Caller) -> dict[str, Any]:
    tenant, quota = caller.tenant, quota_of(caller.tenant)
    return {
        "id": tenant.id,
        "name": tenant.name,
        "cluster_id": tenant.cluster_id,
        "role": caller.role,
        "kafka_bootstrap": settings.HIGHWATER.kafka_public,
        "quota": {
            "partitions": {"limit": quota.partitions_max, "used": quota.partitions_used},
            "topics": {"limit": quota.topics_max, "used": quota.topics_used},
        },
        "policy": _show_policy(caller),
    }


def _show_policy(caller: Caller) -> dict[str, Any]:
    values = asdict(policy_in_force(caller.tenant))
    values["max_partitions_per_topic"] = values.pop("partitions_per_topic_max")
    for name in ("retention_ms_min", "retention_ms_max"):
        values[name] = None if values[name] is None else str(values[name])
    return {**values, "auto_create": caller.tenant.auto_create}
